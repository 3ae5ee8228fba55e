"""Calls attributes.c: named colours, lightness and letter strokes of the cells that changed."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.native.library import POINTER, address, kernel
from foveate.pipeline.spec.attributes import COLOUR_LEVEL as COLOUR_LEVEL
from foveate.pipeline.spec.attributes import COLOURS as COLOURS
from foveate.pipeline.spec.attributes import STROKE_LEVEL as STROKE_LEVEL

BINS = (32, 64, 64)
"""Shape of a table by colour: Y / 8, Cb / 4, Cr / 4, rounded down."""

_attributes = kernel("attributes", POINTER, POINTER)


class _Attributes(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("luma", "cb", "cr", "fine", "name", "lightness")),
        *((name, ctypes.c_void_p) for name in ("shares", "light", "strokes")),
        ("rows", ctypes.c_int32),
        ("columns", ctypes.c_int32),
        ("step", ctypes.c_float),
    )


class Tables(NamedTuple):
    """Name and lightness of each colour: uint8[BINS]."""

    name: NDArray[np.uint8]  # 0 .. COLOURS - 1
    lightness: NDArray[np.uint8]  # L* / 100 * 255


class CellAttributes(NamedTuple):
    """Attributes over the Grid, float32, kept up to date."""

    shares: NDArray[np.float32]  # [COLOURS, grid]: of the cell's 16 samples at level 2, in [0, 1]
    light: NDArray[np.float32]  # L* / 100, mean
    strokes: NDArray[np.float32]  # letter strokes that end in the cell, in its 8 rows at level 1


def attributes(
    colours: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]],
    fine: NDArray[np.float32],
    tables: Tables,
    step: float,
    geometry: Geometry,
    written: Mask,
    found: CellAttributes,
) -> None:
    """Update ``found`` for the tiles of ``written``.

    ``colours`` are luma, Cb and Cr of level 2, ``fine`` is luma of level 1, all in 8-bit units and padded to whole
    tiles. An edge of a stroke is a luma difference above ``step`` between samples two apart.
    """
    rows, columns = geometry.grid

    def at(samples: NDArray[np.float32], level: int) -> int:
        return address(samples, np.float32, geometry.level(level))

    task = _Attributes(
        *(at(samples, COLOUR_LEVEL) for samples in colours),
        at(fine, STROKE_LEVEL),
        address(tables.name, np.uint8, BINS),
        address(tables.lightness, np.uint8, BINS),
        address(found.shares, np.float32, (COLOURS, rows, columns)),
        address(found.light, np.float32, (rows, columns)),
        address(found.strokes, np.float32, (rows, columns)),
        rows,
        columns,
        step,
    )
    _attributes(ctypes.byref(task), address(written, np.bool_, geometry.tiles))
