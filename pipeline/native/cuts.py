"""Calls cuts.c: sums over the cells of a picture, and products of the structures of two pictures."""

import ctypes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import CELLS_PER_TILE, TILE
from foveate.pipeline.native.library import POINTER, address, kernel, plane

_INT = ctypes.c_int32
_cell_sums = kernel("cell_sums", POINTER, POINTER)
_products = kernel("structure_products", POINTER, POINTER, _INT, _INT, _INT, _INT, _INT, POINTER)
_Three = ctypes.c_int64 * 3

CellSums = NDArray[np.uint16]


class Products(NamedTuple):
    """Of the structures of two pictures: of each with itself, and of both."""

    one: int
    other: int
    both: int


def cell_sums(luma: NDArray[np.uint8]) -> CellSums:
    """uint16[rows, columns]: sums over the samples of the 16x16 cells of all tiles that lie wholly in the picture."""
    rows, columns = (length // TILE * CELLS_PER_TILE for length in luma.shape)
    sums = np.empty((rows, columns), np.uint16)
    _cell_sums(ctypes.byref(plane(luma)), sums.ctypes.data)
    return sums


def in_place(one: CellSums, other: CellSums) -> Products:
    """Products of the structures of two pictures of one size, each tile's with that of the tile in the same place.

    The structure of a tile is its Haar details: what its left cells exceed the right ones by, the upper the lower
    ones, and one diagonal the other; sums over samples.
    """
    return _of(one, other, CELLS_PER_TILE, 0, 0)


def displaced(one: CellSums, other: CellSums, down: int, right: int) -> Products:
    """The same for all 2x2 cells, each with that of ``other`` that lies so many cells above and to the left of it."""
    return _of(one, other, 1, down, right)


def _of(one: CellSums, other: CellSums, step: int, down: int, right: int) -> Products:
    products = _Three()
    both = address(one, np.uint16, one.shape), address(other, np.uint16, one.shape)
    _products(*both, *one.shape, step, down, right, products)
    return Products(*products)
