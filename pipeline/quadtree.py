"""Quadtrees over the Grid as flat arrays, in an order that makes a pass over a level a few contiguous additions.

Below TOP_LEVEL the nodes of level l - 1 are stored child-major: the first children of all nodes of level l, then the
second ones, and so on. So the sum over children is the sum of four contiguous quarters. From TOP_LEVEL on, nodes are
stored row by row, and only those that reach into the grid.
"""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import ROOT, TOP_LEVEL, Mask

Places = tuple[NDArray[np.int32], NDArray[np.int32]]


class Quadtree:
    """The tree over a grid of ``inside.shape`` units, up to the level at which one node holds them all.

    ``places[l]`` are the rows and columns of the nodes of level l, in units of 2**l; ``source`` is the place of each
    level-0 node in the flat grid, or -1 beyond it; ``units[l]`` counts the units inside the picture under each node;
    ``shapes[l - TOP_LEVEL]`` are the rows and columns of nodes of level l.
    """

    def __init__(self, inside: Mask) -> None:
        rows, columns = inside.shape
        self.shapes = [(-(-rows // ROOT), -(-columns // ROOT))]
        while self.shapes[-1] != (1, 1):
            self.shapes.append((-(-self.shapes[-1][0] // 2), -(-self.shapes[-1][1] // 2)))
        self.places = [_row_by_row(*shape) for shape in self.shapes]
        for _ in range(TOP_LEVEL):
            self.places.insert(0, places_of_children(*self.places[0]))
        row, column = self.places[0]
        beyond = (row >= rows) | (column >= columns)
        self.source = np.where(beyond, np.int32(-1), row * np.int32(columns) + column)
        self.units = self._counted(inside)

    def within(self, inside: Mask) -> Self:
        """The same tree, in which only the units in ``inside`` count, bool[rows, columns]."""
        other = copy(self)
        other.units = self._counted(inside)
        return other

    def _counted(self, inside: Mask) -> list[NDArray[np.int32]]:
        """The units in ``inside`` under each node, by level."""
        units = [np.where(self.source < 0, np.int32(0), inside.ravel()[self.source].astype(np.int32))]
        for level in range(1, len(self.places)):
            units.append(self.over_children(units[-1], level))
        return units

    def over_children(self, values: NDArray[Any], level: int) -> NDArray[Any]:
        """Sums over the children of the nodes of ``level``, added in reading order; ``values`` has one per node of the
        level below."""
        if level <= TOP_LEVEL:
            return np.asarray(values.reshape(4, -1).sum(axis=0, dtype=values.dtype))
        (rows, columns), below = self.shapes[level - TOP_LEVEL], self.shapes[level - 1 - TOP_LEVEL]
        whole = np.zeros((2 * rows, 2 * columns), values.dtype)
        whole[: below[0], : below[1]] = values.reshape(below)
        return np.asarray((whole[::2, ::2] + whole[::2, 1::2] + whole[1::2, ::2] + whole[1::2, 1::2]).ravel())

    def to_children(self, values: NDArray[Any], level: int) -> NDArray[Any]:
        """Each child's parent's value; ``values`` has one per node of ``level``."""
        if level <= TOP_LEVEL:
            return np.tile(values, 4)
        rows, columns = self.shapes[level - 1 - TOP_LEVEL]
        square = values.reshape(self.shapes[level - TOP_LEVEL])
        return square.repeat(2, axis=0).repeat(2, axis=1)[:rows, :columns].ravel()


def places_of_children(row: NDArray[np.int32], column: NDArray[np.int32]) -> Places:
    """Rows and columns of the 2x2 children, all first children first: two int32[n] -> two int32[4n]."""
    return (
        np.concatenate([2 * row, 2 * row, 2 * row + 1, 2 * row + 1]),
        np.concatenate([2 * column, 2 * column + 1, 2 * column, 2 * column + 1]),
    )


def _row_by_row(rows: int, columns: int) -> Places:
    row, column = np.indices((rows, columns), np.int32).reshape(2, -1)
    return row.copy(), column.copy()
