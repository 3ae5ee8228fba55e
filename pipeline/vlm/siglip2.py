"""SigLIP 2 of Hugging Face's transformers: it knows no coordinates, only the size of a whole grid, row by row.

``attach`` gives a model a second way to read its position table: where ``spatial_shapes`` holds places instead of
sizes, each token gets the position of its own place. Sizes work as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.batch import PLACE, batch_of
from foveate.pipeline.vlm.position_table import read_table


def attach(model: Any) -> None:
    """Let ``model``, a Siglip2VisionModel or a Siglip2Model, take what ``inputs`` gives. Safe to call twice.

    Raises ValueError for another model.
    """
    embeddings: Any = getattr(getattr(model, "vision_model", model), "embeddings", None)
    if not hasattr(embeddings, "resize_positional_embeddings"):
        raise ValueError(f"{type(model).__name__} is no SigLIP 2 vision model: it has no resizable position table")
    if "resize_positional_embeddings" in vars(embeddings):
        return
    resize = embeddings.resize_positional_embeddings

    def read(positional_embeddings: torch.Tensor, spatial_shapes: torch.Tensor, max_length: int) -> torch.Tensor:
        if spatial_shapes.ndim == 3 and spatial_shapes.shape[-1] == PLACE:
            return read_table(positional_embeddings, spatial_shapes, "linear").to(positional_embeddings.dtype)
        return resize(positional_embeddings, spatial_shapes, max_length=max_length)

    embeddings.resize_positional_embeddings = read


def inputs(selections: Sequence[Selection], length: int | None = None) -> dict[str, torch.Tensor]:
    """What the model's ``forward`` or ``get_image_features`` takes: a row of N tokens for each Selection.

    ``pixel_values`` float32[B, N, 768] in [-1, 1], ``pixel_attention_mask`` int32[B, N], and the places as
    ``spatial_shapes`` float32[B, N, 5]. Raises ValueError as ``batch_of`` does.
    """
    batch = batch_of(selections, length)
    return {
        "pixel_values": torch.from_numpy(batch.patches).float() / 127.5 - 1,
        "pixel_attention_mask": torch.from_numpy(batch.valid).int(),
        "spatial_shapes": torch.from_numpy(batch.places),
    }
