"""What vision towers of the Qwen families compute from a whole grid, computed for chosen groups."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import NDArray

from foveate.pipeline.vlm.groups import Groups


def centres(frames: Sequence[Groups], exact: bool = True) -> NDArray[np.float32]:
    """Row and column of each token of all ``frames``, in cells, in the order of their groups: float32[N, 2].

    Not ``exact``: of the cell that holds the centre, as that of a coarse token lies between cells.
    """
    at = np.concatenate([np.stack([groups.places.rows, groups.places.columns], 1) for groups in frames])
    return at if exact else np.floor(at + np.float32(0.5))


def boundaries(lengths: Sequence[int]) -> torch.Tensor:
    """Where stretches of these lengths begin, and the last one ends: int32[len(lengths) + 1]."""
    return torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)


def table_entries(at: NDArray[np.float32], frames: Sequence[Groups], side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which entries of a position table of ``side`` x ``side`` count for each token, and how much: [N, 4] each.

    The table is read bilinearly, its corners on those of the whole picture's grid; ``at`` as ``centres`` gives it.
    """
    tokens = [len(groups) * groups.merge**2 for groups in frames]
    sizes = np.repeat(np.array([groups.grid for groups in frames]) * frames[0].merge, tokens, axis=0)
    taps, shares = zip(*(_taps(at[:, axis], sizes[:, axis], side) for axis in (0, 1)), strict=True)
    indices = (taps[0][:, :, None] * side + taps[1][:, None, :]).reshape(-1, 4)
    return indices, (shares[0][:, :, None] * shares[1][:, None, :]).reshape(-1, 4)


def _taps(at: NDArray[np.float32], size: NDArray[np.int64], side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The two entries beside each place along one axis, and their shares. In float32, step by step as the models do."""
    source = torch.from_numpy(at) * (side - 1) / torch.from_numpy(size - 1).clamp(min=1)
    floor = torch.floor(source)
    offsets = torch.arange(2)
    taps = (floor.long()[:, None] + offsets).clamp(0, side - 1)
    return taps, (1 - (source[:, None] - floor[:, None] - offsets).abs()).clamp(min=0)


def windows(frames: Sequence[Groups], side: int) -> tuple[NDArray[np.int64], list[int]]:
    """The order of the groups of all ``frames`` by windows of ``side`` x ``side`` groups: int64[G], and their sizes."""
    order: list[NDArray[np.int64]] = []
    sizes: list[int] = []
    before = 0
    for groups in frames:
        row, column = np.divmod(groups.position, groups.grid[1])
        window = row // side * (-(-groups.grid[1] // side)) + column // side
        order.append(before + np.argsort(window, kind="stable"))
        sizes += np.unique(window, return_counts=True)[1].tolist()
        before += len(groups)
    return np.concatenate(order), sizes
