"""NaFlexVit of timm: it takes coordinates, but by default reads only the size of a whole grid, row by row, from them.

``attach`` gives a model a second way to read its position table: where ``patch_coord`` holds places instead of whole
coordinates, each token gets the position of its own place. Coordinates work as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.batch import PLACE, batch_of
from foveate.pipeline.vlm.places import Kernel
from foveate.pipeline.vlm.position_table import axis_weights, read_table

_KERNELS: dict[str, Kernel] = {"bilinear": "linear", "bicubic": "cubic"}


def attach(model: Any) -> None:
    """Let ``model`` take what ``inputs`` gives. Safe to call twice.

    Raises ValueError for another model, and for a NaFlexVit whose positions cannot be read at any place: rotary ones,
    and tables that are resampled without antialiasing, with aligned corners, or by sampling at points.
    """
    embeds: Any = getattr(model, "embeds", None)
    kind = getattr(embeds, "pos_embed_type", None)
    if kind not in ("learned", "factorized") or getattr(model, "rope", None) is not None:
        raise ValueError(f"{type(model).__name__} does not place its patches by a learned position table alone")
    if not _resampled(embeds):
        raise ValueError(
            f"{type(model).__name__} must resample its position table by 'bilinear' or 'bicubic', with antialiasing, "
            f"without align_corners or grid_sample, got {embeds.pos_embed_interp_mode!r}"
        )
    name = f"_apply_{kind}_naflex_pos_embed"
    if name not in vars(embeds):
        setattr(embeds, name, _reader(embeds, getattr(embeds, name), _learned if kind == "learned" else _factorized))


def inputs(selections: Sequence[Selection], length: int | None = None) -> dict[str, torch.Tensor]:
    """What the model's ``forward`` takes: a row of N tokens for each Selection.

    ``patches`` float32[B, N, 768] in [-1, 1], ``patch_coord`` float32[B, N, 5] (the places), ``patch_valid``
    bool[B, N]. Raises ValueError as ``batch_of`` does.
    """
    batch = batch_of(selections, length)
    return {
        "patches": torch.from_numpy(batch.patches).float() / 127.5 - 1,
        "patch_coord": torch.from_numpy(batch.places),
        "patch_valid": torch.from_numpy(batch.valid),
    }


def _resampled(embeds: Any) -> bool:
    """Whether the table is resampled as ``table_weights`` does; factorized ones never have antialiasing."""
    smooth = embeds.pos_embed_type == "factorized" or embeds.pos_embed_antialias
    plain = not embeds.pos_embed_align_corners and not embeds.pos_embed_use_grid_sample
    return bool(smooth and plain and embeds.pos_embed_interp_mode in _KERNELS)


def _reader(
    embeds: Any, apply: Callable[..., None], read: Callable[[Any, torch.Tensor], torch.Tensor]
) -> Callable[..., None]:
    def add(x: torch.Tensor, patch_coord: torch.Tensor) -> None:
        if patch_coord.shape[-1] == PLACE:
            x += read(embeds, patch_coord).to(x.dtype)
        else:
            apply(x, patch_coord=patch_coord)

    return add


def _learned(embeds: Any, places: torch.Tensor) -> torch.Tensor:
    kernel = _KERNELS[embeds.pos_embed_interp_mode]
    return read_table(embeds.pos_embed[0], places, kernel, embeds.pos_embed_ar_preserving)


def _factorized(embeds: Any, places: torch.Tensor) -> torch.Tensor:
    down, across = embeds.pos_embed_y[0], embeds.pos_embed_x[0]
    weights = axis_weights(places, (len(down), len(across)), "linear", embeds.pos_embed_ar_preserving, antialias=False)
    return weights[0].to(down.device) @ down.float() + weights[1].to(across.device) @ across.float()
