"""Calls paint.c: paints tokens into the reader's picture."""

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.native.levels import Pyramid
from foveate.pipeline.native.library import POINTER, Plane, address, kernel, plane
from foveate.pipeline.selection import PATCH

_paint_upper = kernel("paint_upper", POINTER, *[ctypes.c_int32] * 2, POINTER, *[ctypes.c_int32] * 4)
_paint_tokens = kernel("paint_tokens", POINTER, POINTER, POINTER, POINTER, POINTER, *[ctypes.c_int32] * 2)


def paint_tokens(
    pyramids: ctypes.Array[Pyramid],
    planes: Sequence[NDArray[np.uint8]],
    lod: NDArray[np.uint8],
    row: NDArray[np.int32],
    column: NDArray[np.int32],
    cubic: bool = False,
) -> None:
    """Paint tokens, sampled from ``pyramids``, into the three ``planes`` of the reader's picture.

    They are enlarged bilinearly, or bicubically (``cubic``).

    ``row`` and ``column`` are in units of 16 * 2**lod pixels; all three arrays have one length. Raises ValueError for a
    token that does not lie in the picture.
    """
    if not len(lod):
        return
    rows, columns = planes[0].shape
    side = PATCH << lod.astype(np.int64)
    if lod.max() > TOP_LEVEL or min(row.min(), column.min()) < 0:
        raise ValueError(f"tokens must have LOD 0..{TOP_LEVEL} and places of 0 or more, got {lod.max()}")
    if ((row + 1) * side).max() > rows or ((column + 1) * side).max() > columns:
        raise ValueError(f"tokens must lie in the picture of {columns}x{rows} pixels")
    places = (
        address(lod, np.uint8, lod.shape),
        address(row, np.int32, lod.shape),
        address(column, np.int32, lod.shape),
    )
    _paint_tokens(pyramids, (Plane * 3)(*map(plane, planes)), *places, len(lod), cubic)


def paint_upper(
    samples: NDArray[np.float32], plane_onto: NDArray[np.uint8], step: int, row: int, column: int, cubic: bool = False
) -> None:
    """Paint one token of a level above TOP_LEVEL, whose ``samples`` are 2**step times as coarse as the plane.

    It is cut at the plane's right and bottom edge. Raises ValueError for a token wholly outside.
    """
    rows, columns = plane_onto.shape
    side = PATCH << step
    if not (0 <= row * side < rows and 0 <= column * side < columns):
        raise ValueError(f"tokens must lie in the picture of {columns}x{rows} samples, got row {row}, column {column}")
    onto = plane(plane_onto)
    _paint_upper(
        address(samples, np.float32, samples.shape), *samples.shape, ctypes.byref(onto), step, row, column, cubic
    )
