"""Quadtrees over the Grid as flat arrays, in an order that makes a pass over a level a few contiguous additions.

The nodes of level l - 1 are stored child-major: the first children of all nodes of level l, then the second ones, and so
on. So the sum over children is the sum of four contiguous quarters, and the 4**l cells of node i of level l are
the elements i, i + n, i + 2n ... of the cells, n being the number of nodes of level l.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import ROOT, TOP_LEVEL, Mask


class Quadtree:
    """The trees over a grid of ``inside.shape`` units; roots span 16 x 16 units and may reach over its edge."""

    def __init__(self, inside: Mask) -> None:
        rows, columns = inside.shape
        root_rows, root_columns = -(-rows // ROOT), -(-columns // ROOT)
        row, column = np.indices((root_rows, root_columns), np.int32).reshape(2, -1)
        self.rows, self.columns = [row], [column]
        for _ in range(TOP_LEVEL):
            row = np.concatenate([2 * row, 2 * row, 2 * row + 1, 2 * row + 1])
            column = np.concatenate([2 * column, 2 * column + 1, 2 * column, 2 * column + 1])
            self.rows.insert(0, row)
            self.columns.insert(0, column)
        off_grid = (row >= rows) | (column >= columns)
        self._source = np.where(off_grid, rows * columns, row * columns + column)
        self._position = np.empty(rows * columns + 1, np.intp)
        self._position[self._source] = np.arange(len(row))
        self.inside = self.flat(inside)
        self.units = [self.inside.astype(np.int32)]  # per level and node: units inside the picture
        for _ in range(TOP_LEVEL):
            self.units.append(over_children(self.units[-1]))

    def flat(self, grid: NDArray[np.generic]) -> NDArray[np.generic]:
        """A map over the grid, [..., rows, columns], in the order of the level-0 nodes; zero off the grid."""
        values = grid.reshape(*grid.shape[:-2], -1)
        padded = np.concatenate([values, np.zeros((*values.shape[:-1], 1), values.dtype)], axis=-1)
        return padded[..., self._source]

    def under(self, values: NDArray[np.generic], level: int, nodes: NDArray[np.intp]) -> NDArray[np.generic]:
        """Level-0 ``values`` [..., n] under ``nodes`` of ``level``: [..., 4**level, len(nodes)]."""
        return values.reshape(*values.shape[:-1], 4**level, -1)[..., nodes]


def over_children(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Sum over the four children: [..., 4n] -> [..., n]."""
    quarter = values.shape[-1] // 4
    total = values[..., :quarter] + values[..., quarter : 2 * quarter]
    total += values[..., 2 * quarter : 3 * quarter]
    total += values[..., 3 * quarter :]
    return total


def to_children(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Each node's value for its four children: [n] -> [4n]."""
    return np.concatenate([values, values, values, values])
