"""Quadtrees over the Grid as flat arrays, in an order that makes a pass over a level a few contiguous additions.

The nodes of level l - 1 are stored child-major: the first children of all nodes of level l, then the second ones, and
so on. So the sum over children is the sum of four contiguous quarters.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import ROOT, TOP_LEVEL, Mask

T = TypeVar("T", np.bool_, np.int32, np.float32)


class Quadtree:
    """The trees over a grid of ``inside.shape`` units; roots span 16 x 16 units and may reach over its edge."""

    def __init__(self, inside: Mask) -> None:
        rows, columns = inside.shape
        root_rows, root_columns = -(-rows // ROOT), -(-columns // ROOT)
        row, column = np.indices((root_rows, root_columns), np.int32).reshape(2, -1)
        self.rows, self.columns = [row], [column]
        for _ in range(TOP_LEVEL):
            row, column = places_of_children(row, column)
            self.rows.insert(0, row)
            self.columns.insert(0, column)
        off_grid = (row >= rows) | (column >= columns)
        self._source = np.where(off_grid, rows * columns, row * columns + column)
        self.inside: Mask = self.flat(inside)
        self.units = [self.inside.astype(np.int32)]  # per level and node: units inside the picture
        for _ in range(TOP_LEVEL):
            self.units.append(over_children(self.units[-1]))

    def flat(self, grid: NDArray[T]) -> NDArray[T]:
        """A map over the grid, [rows, columns], in the order of the level-0 nodes; zero off the grid."""
        off_grid = np.zeros(1, grid.dtype)
        return np.concatenate([grid.ravel(), off_grid])[self._source]


def places_of_children(row: NDArray[np.int32], column: NDArray[np.int32]) -> tuple[NDArray[np.int32], ...]:
    """Rows and columns of the 2x2 children, all first children first: two int32[n] -> two int32[4n]."""
    return (
        np.concatenate([2 * row, 2 * row, 2 * row + 1, 2 * row + 1]),
        np.concatenate([2 * column, 2 * column + 1, 2 * column, 2 * column + 1]),
    )


def over_children(values: NDArray[T]) -> NDArray[T]:
    """Sum over the four children: [..., 4n] -> [..., n]."""
    quarter = values.shape[-1] // 4
    total = np.add(values[..., :quarter], values[..., quarter : 2 * quarter])
    total += values[..., 2 * quarter : 3 * quarter]
    total += values[..., 3 * quarter :]
    return total


def to_children(values: NDArray[T]) -> NDArray[T]:
    """Each node's value for its four children: [n] -> [4n]."""
    return np.concatenate([values, values, values, values])
