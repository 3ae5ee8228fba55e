"""Calls leaf_errors.c: how wrong each cell is when it is shown at a level."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import TOP_LEVEL, Geometry, Mask
from foveate.pipeline.native.levels import Pyramid
from foveate.pipeline.native.library import POINTER, address, kernel

_leaf_errors = kernel("leaf_errors", POINTER, POINTER, ctypes.c_int32, ctypes.c_int32, POINTER, POINTER, POINTER)


def leaf_errors(
    pyramids: ctypes.Array[Pyramid],
    weights: Sequence[float],
    geometry: Geometry,
    written: Mask,
    errors: Sequence[NDArray[np.float32]],
) -> None:
    """Update ``errors`` after the tiles of ``written`` were: of all cells in them, and of those beside them.

    ``errors[k - 1]``, float32[grid], becomes the squared error (8-bit units squared) of a cell shown at level k,
    enlarged bilinearly: summed over its samples in each plane, times the plane's weight.
    """
    rows, columns = geometry.grid
    maps = (POINTER * TOP_LEVEL)(*(address(error, np.float32, geometry.grid) for error in errors))
    near, mask = np.empty(columns, np.uint8), address(written, np.bool_, geometry.tiles)
    _leaf_errors(pyramids, (ctypes.c_double * 3)(*weights), rows, columns, mask, near.ctypes.data, maps)
