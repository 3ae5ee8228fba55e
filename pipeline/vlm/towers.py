"""Runs vision towers of transformers on selected patches only.

What a tower works out from the size of a whole grid (rotary positions, the weights of its position table, which
patches attend to each other) it also takes as keywords. So it gets those of a subset, and its code is unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from foveate.pipeline.vlm.families import refusal
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.rows import channel_rows, resampled
from foveate.pipeline.vlm.tower_places import boundaries, centres, table_entries, windows

_ON_HOST: Final = ("cu_seqlens", "cu_window_seqlens", "merge_sizes")


class Tower:
    """The vision tower of a model, ``visual``, and what it takes. ``Tower(model)`` of a Gemma 4 is a Gemma4Tower."""

    def __new__(cls, model: Any) -> Tower:
        """Raises ValueError, in one line, for a model that does not fit."""
        kind = getattr(model.config, "model_type", type(model).__name__)
        vision = getattr(model.config, "vision_config", None)
        if (why := refusal(kind, vision.to_dict() if vision is not None else None)) is not None:
            raise ValueError(why)
        if kind == "gemma4":
            from foveate.pipeline.vlm.gemma4 import Gemma4Tower  # which is a Tower itself

            return super().__new__(Gemma4Tower)
        return super().__new__(cls)

    def __init__(self, model: Any) -> None:
        self._kind = kind = model.config.model_type
        self._model = model
        self.visual = model.model.vision_model if kind == "video_llama_3" else model.model.visual
        config = self.visual.config
        self.patch = int(config.patch_size)
        self.frames = int(getattr(config, "temporal_patch_size", 1))
        self.merge = 2 if kind == "video_llama_3" else int(config.spatial_merge_size)
        self.computes_boundaries = kind.startswith("glm")
        self.windows = "get_vision_window_index" in inspect.getsource(type(self.visual).forward)

    def encode(self, rows: torch.Tensor, frames: Sequence[Groups], exact: bool = True) -> Any:
        """Features of the groups of all ``frames``, as the model's ``mm_encoder_outputs`` wants them.

        ``rows`` are float[N, ...] for the N tokens of all frames, at least one, in the order of their groups. ``exact``
        positions are the tokens' centres; otherwise those of the cells that hold the centres.
        """
        shown = [groups for groups in frames if len(groups)]
        with torch.no_grad():
            found = self.run(rows.to(self.device, self.dtype), *self.inputs(shown, exact))
        return split(found, [len(groups) for groups in frames])

    def rows(self, patches: NDArray[np.uint8], mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
        """The rows that ``encode`` takes of patches: uint8[K, P, P, 3] -> float32[K, 3*frames*patch*patch].

        ``mean`` and ``std`` are the image processor's.
        """
        return torch.from_numpy(channel_rows(resampled(patches, self.patch), mean, std, self.frames))

    @property
    def device(self) -> torch.device:
        """The device of the tower's weights."""
        return next(self.visual.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The type of its input rows: that of its weights."""
        return next(self.visual.parameters()).dtype

    def inputs(self, frames: Sequence[Groups], exact: bool) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The grid, and the other inputs of the tower besides the rows, each on the device where the tower reads it.

        Boundaries are read on the host, to split its input there; GLM's towers also compute with them on their device.
        """
        grid = torch.tensor([[1, *(self.merge * side for side in groups.grid)] for groups in frames])
        keywords = self._keywords(frames, exact)
        if self._kind == "video_llama_3":  # it averages groups by the grid: in one column of groups they are the same
            grid = torch.tensor([[1, self.merge * sum(map(len, frames)), self.merge]])
            keywords["merge_sizes"] = torch.tensor([self.merge])
        stay = () if self.computes_boundaries else _ON_HOST
        moved = {name: value if name in stay else value.to(self.device) for name, value in keywords.items()}
        return grid.to(self.device) if self.computes_boundaries else grid, moved

    def run(self, rows: torch.Tensor, grid: torch.Tensor, keywords: Mapping[str, torch.Tensor]) -> Any:
        """The tower's own output for rows, grid and keywords as ``inputs`` gives them."""
        found = self.visual(rows, grid_thw=grid, return_dict=True, **keywords)
        if self._kind == "video_llama_3":
            found.pooler_output = self._model.model.projector(found.last_hidden_state)
        return found

    @contextmanager
    def compiled(self) -> Iterator[None]:
        """Meanwhile the tower's blocks are compiled by torch, for just the sizes that come."""
        holder, name = (self.visual.encoder, "layers") if hasattr(self.visual, "encoder") else (self.visual, "blocks")
        blocks = getattr(holder, name)
        setattr(holder, name, torch.nn.ModuleList([torch.compile(block, dynamic=False) for block in blocks]))
        try:
            yield
        finally:
            setattr(holder, name, blocks)

    def _keywords(self, frames: Sequence[Groups], exact: bool) -> dict[str, torch.Tensor]:
        at = centres(frames, exact)
        positions = torch.from_numpy(at)
        if not exact or (at == np.floor(at)).all():
            positions = positions.long()
        lengths = [len(groups) * self.merge**2 for groups in frames]
        keywords = {"position_ids": positions, "cu_seqlens": boundaries(lengths)}
        if hasattr(self.visual, "num_grid_per_side"):
            indices, weights = self._table(at, frames)
            keywords |= {"interp_indices": indices, "interp_weights": weights}
        if self.windows:
            order, sizes = windows(frames, self.visual.window_size // self.merge // self.patch)
            ends = boundaries([size * self.merge**2 for size in sizes])
            keywords |= {"window_index": torch.from_numpy(order), "cu_window_seqlens": ends}
        return keywords

    def _table(self, at: NDArray[np.float32], frames: Sequence[Groups]) -> tuple[torch.Tensor, torch.Tensor]:
        visual = self.visual
        if visual.interpolation_mode != "bilinear" or not visual.interpolation_align_corners:
            raise ValueError("a position table must be read bilinearly with aligned corners, as the Qwen families do")
        return table_entries(at, frames, int(visual.num_grid_per_side))


def split(found: Any, counts: Sequence[int]) -> Any:
    """A tower's output with a tensor for each frame, of ``counts`` groups each, as ``mm_encoder_outputs`` wants it."""
    found.pooler_output = torch.split(found.pooler_output, counts)
    if getattr(found, "deepstack_features", None) is not None:
        found.deepstack_features = [torch.split(each, counts) for each in found.deepstack_features]
    return found
