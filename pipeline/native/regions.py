"""Calls regions.c: connected regions of maps over the Grid, their extents, and which of them move."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Mask
from foveate.pipeline.native.library import POINTER, address, kernel

_MEASURES = 6  # of a region: cells, left, top, right, bottom, plane
_MOVEMENT = 2 * _MEASURES + 1  # of the moving cells of a region

_INT, _FLOAT, _LONG = ctypes.c_int32, ctypes.c_float, ctypes.c_int64
_label_regions = kernel(
    "label_regions", POINTER, _INT, POINTER, _FLOAT, _INT, _INT, *[POINTER] * 5, result=ctypes.c_int32
)
_extreme_sizes = kernel("extreme_sizes", POINTER, _INT, _LONG, *[POINTER] * 3)
_fill_moving = kernel("fill_moving", POINTER, _INT, _INT, _INT, POINTER, _INT, *[POINTER] * 4)
_weaken_small = kernel("weaken_small", POINTER, _INT, _INT, _FLOAT, _FLOAT, *[POINTER] * 5)


class Regions(NamedTuple):
    """Connected regions (8-connectivity) of several maps. Number 0 is no region."""

    label: NDArray[np.int32]  # [planes, grid]: the number of the region; a plane for each map that has any
    measures: NDArray[np.int32]  # [regions, 6]: cells; first column and row, last column and row; plane

    @property
    def cells(self) -> NDArray[np.int32]:
        """[regions]: how many cells it has."""
        return self.measures[:, 0]


class Filling(ctypes.Structure):
    """When a whole region is taken to move; see regions.c."""

    _fields_ = (
        ("sure", ctypes.c_float),
        ("span", ctypes.c_double),
        ("share", ctypes.c_double),
        ("widest", ctypes.c_double),
        ("most", ctypes.c_double),
    )


def label_regions(shares: Sequence[NDArray[np.float32]], inside: Mask, enough: float) -> Regions:
    """The regions of each map, float32[grid], where it is at least ``enough``, in the cells ``inside``."""
    grid, planes = inside.shape, len(shares)
    most = _most(grid)
    label = np.empty((planes, *grid), np.int32)
    measures = np.empty((planes * most + 1, _MEASURES), np.int32)
    used, parent, present = ctypes.c_int32(), np.empty(most + 1, np.int32), np.empty(grid, np.uint8)
    count = _label_regions(
        (POINTER * planes)(*(address(share, np.float32, grid) for share in shares)),
        planes,
        address(inside, np.bool_, grid),
        enough,
        *grid,
        label.ctypes.data,
        ctypes.byref(used),
        measures.ctypes.data,
        parent.ctypes.data,
        present.ctypes.data,
    )
    return Regions(label[: used.value], measures[:count])


def extreme_sizes(found: Regions, size: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The smallest and largest ``size``, float32[regions] in [0, 1], of the regions that contain each cell.

    float32[grid] each; 1 and 0 if there is none.
    """
    planes, *grid = found.label.shape
    smallest, largest = np.empty((2, *grid), np.float32)
    _extreme_sizes(
        address(found.label, np.int32, found.label.shape),
        planes,
        smallest.size,
        address(size, np.float32, (len(found.measures),)),
        smallest.ctypes.data,
        largest.ctypes.data,
    )
    return smallest, largest


def fill_regions(moving: NDArray[np.float32], recent: Mask, found: Regions, rule: Filling) -> None:
    """Set ``moving``, float32[grid], to 1 in all cells of the regions that move by the ``rule``.

    ``recent``, bool[grid]: cells that moved recently.
    """
    planes, rows, columns = found.label.shape
    movement = np.empty((len(found.measures), _MOVEMENT), np.int32)
    _fill_moving(
        address(found.label, np.int32, found.label.shape),
        planes,
        rows,
        columns,
        address(found.measures, np.int32, found.measures.shape),
        len(found.measures),
        ctypes.byref(rule),
        address(recent, np.bool_, (rows, columns)),
        address(moving, np.float32, (rows, columns)),
        movement.ctypes.data,
    )


def weaken_small(moving: NDArray[np.float32], none: float, full: float) -> None:
    """Scale ``moving``, float32[grid], by its sum over the connected region of moving cells.

    To 0 where that is at most ``none``, unchanged from ``full`` on, linearly between.
    """
    rows, columns = moving.shape
    most = _most((rows, columns)) + 1
    label, present = np.empty(moving.shape, np.int32), np.empty(moving.shape, np.uint8)
    parent, measures, mass = np.empty(most, np.int32), np.empty((most, _MEASURES), np.int32), np.empty(most)
    room = (label, parent, measures, mass, present)
    _weaken_small(
        address(moving, np.float32, moving.shape), rows, columns, none, full, *(array.ctypes.data for array in room)
    )


def _most(grid: tuple[int, ...]) -> int:
    """The most regions that a map can have."""
    rows, columns = grid
    return -(-rows // 2) * -(-columns // 2)
