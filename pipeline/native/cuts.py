"""Calls cuts.c: the structure of a picture, and products of two structures."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import TILE
from foveate.pipeline.native.library import POINTER, address, kernel, plane

_structure = kernel("structure", POINTER, POINTER)
_product = kernel("structures_product", POINTER, POINTER, ctypes.c_int32, result=ctypes.c_int64)

Structure = NDArray[np.int32]


def structure(luma: NDArray[np.uint8]) -> Structure:
    """int32[tiles, 3]: the Haar details of each 32x32 tile that lies wholly in the picture, row by row.

    What the left 16x16 cells of the tile exceed the right ones by, the upper the lower ones, and one diagonal the
    other: sums over samples.
    """
    height, width = luma.shape
    details = np.empty(((height // TILE) * (width // TILE), 3), np.int32)
    _structure(ctypes.byref(plane(luma)), details.ctypes.data)
    return details


def product(one: Structure, other: Structure) -> int:
    """Sum of the products of two structures of one size."""
    return int(_product(address(one, np.int32, one.shape), address(other, np.int32, one.shape), one.size))
