"""Input and output of every strategy: errors, channels, scores and the budget in, tokens out."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import CELL, Geometry, Map, Mask


class Tokens(NamedTuple):
    """Where the tokens are. All arrays have length K.

    They come coarse to fine, then row by row. With ``merge`` 2 or 3 that is the order of their groups, each of which is
    ``merge**2`` tokens of one LOD, row by row. See ``in_groups`` for the picture's edge.
    """

    lod: NDArray[np.uint8]
    row: NDArray[np.int32]  # in units of (16 * 2**lod) pixels
    column: NDArray[np.int32]

    @classmethod
    def at_centres(cls, lod: NDArray[np.uint8], x: NDArray[np.int32], y: NDArray[np.int32]) -> Self:
        """The tokens whose centres, in level-0 pixels, are (x, y)."""
        side = CELL << lod.astype(np.int32)
        return cls(lod, y // side, x // side)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One frame's allocation. Maps are float32[grid]."""

    geometry: Geometry
    budget: int
    weight: Map  # weight of the squared error in the cell; 0 in the padding
    errors: tuple[Map, ...]  # squared error over the cell when shown at LOD 1, 2 .. the coarsest that may be chosen
    picture_errors: tuple[Map, ...]  # LODs 1 to 4: the same without query prior and residuals
    kept: Map | None  # squared error of the reader's picture; None: nothing has been shown, or memory is "frame"
    channels: dict[str, Map]
    score: Map
    gaze: tuple[float, float] | None = None  # level-0 pixels; None: no gaze
    participation: Map | None = None  # None without a query
    debt: float = 0.0  # of rate control, as a share of the greatest, in [0, 1]; see rate.py
    region: Mask | None = None  # bool[grid]: the cells that tokens are chosen for; None: all of the picture


class Strategy(Protocol):
    """Chooses tokens within the budget. The choice depends on the problem alone."""

    def allocate(self, problem: Problem) -> Tokens:
        """At most ``problem.budget`` tokens, the first frame included."""


def over_groups(grid: Map, merge: int) -> Map:
    """Sum over each ``merge`` x ``merge`` group of cells, the units of that merge: float32[rows, columns] -> [units].

    Cells of a group that lie beyond the grid count 0. Columns are summed first, then they are added from left to right.
    """
    return _sums(_padded(grid, merge, "constant"), merge)


def any_of_groups(cells: Mask, merge: int) -> Mask:
    """Whether any cell of each group is set: bool[rows, columns] -> bool[units]."""
    return cells if merge == 1 else over_groups(cells.astype(np.float32), merge) > 0


def means_of_groups(grid: Map, merge: int) -> Map:
    """The same as means; what lies beyond the grid is as the nearest cell of it."""
    return np.asarray(_sums(_padded(grid, merge, "edge"), merge) / merge**2, np.float32)


def _padded(grid: Map, merge: int, mode: Literal["constant", "edge"]) -> Map:
    beyond = [(0, -cells % merge) for cells in grid.shape]
    return np.pad(grid, beyond, mode=mode) if np.any(beyond) else grid


def _sums(grid: Map, merge: int) -> Map:
    rows = reduce(add, (grid[part::merge] for part in range(merge)))
    return np.asarray(reduce(add, (rows[:, part::merge] for part in range(merge))), np.float32)


def in_groups(nodes: Tokens, merge: int, geometry: Geometry) -> Tokens:
    """The ``merge`` x ``merge`` tokens of each of ``nodes``, which are places of whole groups, one group after another.

    Where a group reaches over the right or bottom edge, tokens that would lie wholly outside the picture repeat their
    neighbours in the group: a lower row the upper one, a right column the left one.
    """
    if merge == 1:
        return nodes
    count, part = len(nodes.lod), np.arange(merge**2, dtype=np.int32)
    side = CELL << nodes.lod.astype(np.int32)[:, None]
    row = np.minimum(nodes.row[:, None] * merge + part // merge, (geometry.height - 1) // side)
    column = np.minimum(nodes.column[:, None] * merge + part % merge, (geometry.width - 1) // side)
    flat = count * merge**2
    return Tokens(nodes.lod.repeat(merge**2), row.reshape(flat), column.reshape(flat))


def in_order(lod: NDArray[np.uint8], row: NDArray[np.int32], column: NDArray[np.int32]) -> Tokens:
    """Tokens, or places of groups, sorted from coarse to fine, then row by row."""
    order = np.lexsort((column, row, -lod.astype(np.int8)))
    return Tokens(lod[order], row[order], column[order])
