"""Checked frames as tensors, which pass from the parser to the engine, and back again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.places import Places
from foveate.pipeline.vlm.rows import resampled
from foveate.pipeline.vlm.vllm.checks import Shown
from foveate.pipeline.vlm.vllm.request import PATCHES

PLACE: Final = "foveate_place"  # float32[N, 2]: row and column of each token's centre, in cells
GROUP: Final = "foveate_group"  # int64[G]: which group of the whole picture's grid holds each group's centre
COUNT: Final = "foveate_count"  # int64[I]: groups of each frame
GRID: Final = "image_grid_thw"  # int64[I, 3]: 1, and rows and columns of patches of the whole picture


def tensors_of(frames: Sequence[tuple[Shown, Groups]], side: int) -> dict[str, torch.Tensor]:
    """The fields of ``frames``, in the order of their groups, with patches of ``side`` x ``side`` pixels."""
    groups = [each for _, each in frames]
    patches = [resampled(shown.patches[each.order], side) for shown, each in frames]
    places = [np.stack([each.places.rows, each.places.columns], 1) for each in groups]
    grids = [[1, *(each.merge * length for length in each.grid)] for each in groups]
    return {
        PATCHES: torch.from_numpy(np.concatenate(patches)),
        PLACE: torch.from_numpy(np.concatenate(places)),
        GROUP: torch.from_numpy(np.concatenate([each.position for each in groups])),
        COUNT: torch.tensor([len(each) for each in groups]),
        GRID: torch.tensor(grids),
    }


def groups_of(fields: Mapping[str, Any], merge: int) -> list[Groups]:
    """The groups of each frame again, in the order of the patches. Their extents, which no tower reads, are 1."""
    counts = fields[COUNT].flatten().tolist()
    ends = np.cumsum([0, *counts])
    places, position = fields[PLACE].cpu().numpy(), fields[GROUP].cpu().numpy()
    grids = fields[GRID].reshape(-1, 3).tolist()
    return [
        _groups(places[start * merge**2 : end * merge**2], position[start:end], (down, across), merge)
        for (start, end), (_, down, across) in zip(pairwise(ends.tolist()), grids, strict=True)
    ]


def _groups(places: NDArray[np.float32], position: NDArray[np.int64], grid: tuple[int, int], merge: int) -> Groups:
    rows, columns = places.T
    return Groups(
        merge,
        np.arange(len(places)),
        position,
        (grid[0] // merge, grid[1] // merge),
        Places(rows, columns, np.ones_like(rows), grid),
    )
