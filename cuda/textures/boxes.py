"""Boxes of texels: which ones changed, and what depends on them one level up."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Box(NamedTuple):
    """``rows`` x ``columns`` texels, the first of them at row ``top`` and column ``left``."""

    top: int
    left: int
    rows: int
    columns: int


def checked_box(box: Box, shape: tuple[int, int]) -> Box:
    """``box``. Raises ValueError where it is empty or does not lie within ``shape``, rows and columns."""
    top, left, rows, columns = (int(part) for part in box)
    inside = top >= 0 and left >= 0 and top + rows <= shape[0] and left + columns <= shape[1]
    if not inside or rows < 1 or columns < 1:
        raise ValueError(
            f"a box must lie within {shape[0]} rows and {shape[1]} columns and hold a texel, got top {top}, "
            f"left {left}, {rows} rows, {columns} columns"
        )
    return Box(top, left, rows, columns)


def one_level_up(box: Box, shape: tuple[int, int]) -> Box:
    """The texels of the next level that depend on ``box`` of a level of ``shape``; see mipmap.cu."""
    top, bottom = _one_axis_up(box.top, box.top + box.rows, shape[0])
    left, right = _one_axis_up(box.left, box.left + box.columns, shape[1])
    return Box(top, left, bottom - top, right - left)


def _one_axis_up(first: int, end: int, size: int) -> tuple[int, int]:
    """The same along one axis: ``first`` up to, but without ``end``. Of an odd size, a texel has three below it."""
    coarse = max(1, size // 2)
    return max(0, first - size % 2) // 2, min(coarse, (end - 1) // 2 + 1)


def boxes_of(marked: NDArray[np.bool_], side: int, shape: tuple[int, int], most: int) -> list[Box]:
    """At most ``most`` disjoint boxes that cover the marked tiles, ``side`` x ``side`` texels each, of a picture.

    Neighbours in a row of tiles become one box, and equal ones below each other too; if these are too many, one box
    covers all.
    """
    finished: list[tuple[int, int, int, int]] = []  # top, bottom, left, right, in tiles
    growing: dict[tuple[int, int], int] = {}  # left and right to the top
    for row in range(marked.shape[0] + 1):
        runs = _runs(marked[row]) if row < marked.shape[0] else []
        finished += [(top, row, *run) for run, top in growing.items() if run not in runs]
        growing = {run: growing.get(run, row) for run in runs}
    if len(finished) > most:
        tops, bottoms, lefts, rights = zip(*finished, strict=True)
        finished = [(min(tops), max(bottoms), min(lefts), max(rights))]
    return [_in_texels(found, side, shape) for found in finished]


def _runs(row: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and end of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(np.int8)))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def _in_texels(tiles: Sequence[int], side: int, shape: tuple[int, int]) -> Box:
    top, bottom, left, right = (edge * side for edge in tiles)
    return Box(top, left, min(bottom, shape[0]) - top, min(right, shape[1]) - left)
