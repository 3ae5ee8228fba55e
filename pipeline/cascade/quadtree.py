"""Quadtrees over the Grid as flat arrays, in an order that makes a pass over a level a few contiguous additions.

The nodes of level l - 1 are stored child-major: the first children of all nodes of level l, then the second ones, and
so on. So the sum over children is the sum of four contiguous quarters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import ROOT, TOP_LEVEL, Mask

Places = tuple[NDArray[np.int32], NDArray[np.int32]]


class Quadtree:
    """The trees over a grid of ``inside.shape`` units; roots span 16 x 16 units and may reach over its edge.

    ``places[l]`` are the rows and columns of the nodes of level l, in units of 2**l; ``source`` is the place of each
    level-0 node in the flat grid, or -1 beyond it; ``units[l]`` counts the units inside the picture under each node.
    """

    def __init__(self, inside: Mask) -> None:
        rows, columns = inside.shape
        root_rows, root_columns = -(-rows // ROOT), -(-columns // ROOT)
        row, column = np.indices((root_rows, root_columns), np.int32).reshape(2, -1)
        self.places: list[Places] = [(row.copy(), column.copy())]
        for _ in range(TOP_LEVEL):
            row, column = places_of_children(row, column)
            self.places.insert(0, (row, column))
        beyond = (row >= rows) | (column >= columns)
        self.source = np.where(beyond, np.int32(-1), row * np.int32(columns) + column)
        units = np.where(beyond, np.int32(0), inside.ravel()[self.source].astype(np.int32))
        self.units = [units]
        for _ in range(TOP_LEVEL):
            units = units.reshape(4, -1).sum(axis=0, dtype=np.int32)
            self.units.append(units)


def places_of_children(row: NDArray[np.int32], column: NDArray[np.int32]) -> Places:
    """Rows and columns of the 2x2 children, all first children first: two int32[n] -> two int32[4n]."""
    return (
        np.concatenate([2 * row, 2 * row, 2 * row + 1, 2 * row + 1]),
        np.concatenate([2 * column, 2 * column + 1, 2 * column, 2 * column + 1]),
    )
