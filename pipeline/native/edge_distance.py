"""Calls edge_distance.c: the distance of each cell to the nearest edge cell."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.native.library import POINTER, address, kernel

_INT = ctypes.c_int32
_edge_distance = kernel("edge_distance", POINTER, POINTER, _INT, _INT, ctypes.c_float, _INT, POINTER, POINTER, POINTER)


def edge_distance(
    edges: NDArray[np.float32], inverted: NDArray[np.float32], least: float, reach: int
) -> NDArray[np.float32]:
    """Cells to the nearest one where a map exceeds ``least``, / ``reach``, clipped to 1: float32[rows, columns]."""
    shape = edges.shape
    apart, squares, distance = np.empty(shape, np.int32), np.empty(shape[1], np.int32), np.empty(shape, np.float32)
    maps = (address(values, np.float32, shape) for values in (edges, inverted))
    _edge_distance(*maps, *shape, least, reach, apart.ctypes.data, squares.ctypes.data, distance.ctypes.data)
    return distance
