"""Calls levels.c: writes tiles into the levels."""

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import TILE, TOP_LEVEL, Geometry, Mask
from foveate.pipeline.native.library import POINTER, Plane, address, kernel, plane

_INT = ctypes.c_int32
_write_tiles = kernel("write_tiles", POINTER, POINTER, POINTER, POINTER, POINTER)


class Pyramid(ctypes.Structure):
    """One plane at all its levels; see native.h."""

    _fields_ = (
        ("pixels", ctypes.c_void_p),
        ("coarse", ctypes.c_void_p * TOP_LEVEL),
        ("stride", ctypes.c_int64),
        ("base", ctypes.c_int32),
        ("rows", ctypes.c_int32),
    )


class _Motion(ctypes.Structure):
    _fields_ = (
        ("before", ctypes.c_void_p),
        ("changed", ctypes.c_void_p),
        ("motion", ctypes.c_void_p),
        ("scale", ctypes.c_float),
        ("level", ctypes.c_int32),
    )


class LeafErrors(ctypes.Structure):
    """What ``leaf_errors`` needs; see native.h."""

    _fields_ = (
        ("weights", ctypes.c_double * 3),
        ("errors", POINTER * TOP_LEVEL),
        ("written", ctypes.c_void_p),
        ("near", ctypes.c_void_p),
        ("rows", ctypes.c_int32),
        ("columns", ctypes.c_int32),
    )


class Motion(NamedTuple):
    """The motion map, updated while tiles are written: maximum of |luma - before| * scale per cell, clipped to 1."""

    before: NDArray[Any]  # previous luma of ``level``: uint8 at level 0, else float32; may be the array that is written
    changed: Mask  # bool[tiles] to compute it for
    motion: NDArray[np.float32]  # [grid]; unchanged in other tiles
    scale: float
    level: int


def pyramid(pixels: NDArray[np.uint8], coarse: Sequence[NDArray[np.float32]], base: int) -> Pyramid:
    """The plane ``pixels`` (level ``base``) and its coarser levels, for as long as the arrays live."""
    height, width = pixels.shape
    levels = [address(level, np.float32, (height >> k, width >> k)) for k, level in enumerate(coarse, start=1)]
    return Pyramid(address(pixels, np.uint8, (height, width)), (POINTER * TOP_LEVEL)(*levels), width, base, height)


def write_tiles(
    planes: Sequence[NDArray[np.uint8]],
    pyramids: ctypes.Array[Pyramid],
    weights: Sequence[float],
    errors: Sequence[NDArray[np.float32]],
    geometry: Geometry,
    written: Mask,
    motion: Motion | None,
) -> None:
    """Write the tiles of ``written`` from three ``planes`` (unpadded) and rebuild what depends on them.

    ``errors[k - 1]``, float32[grid], becomes the squared error (8-bit units squared) of a cell shown at level k,
    enlarged bilinearly: summed over its samples in each plane, times the plane's weight.
    """
    for index, source in enumerate(planes):
        side = 1 << pyramids[index].base
        if source.shape != (-(-geometry.height // side), -(-geometry.width // side)):
            raise ValueError(f"plane {index} must fit a {geometry.width}x{geometry.height} picture, got {source.shape}")
    sources, mask = (Plane * 3)(*map(plane, planes)), address(written, np.bool_, geometry.tiles)
    maps = (POINTER * TOP_LEVEL)(*(address(error, np.float32, geometry.grid) for error in errors))
    near = np.empty(geometry.grid[1], np.uint8)
    leaves = LeafErrors((ctypes.c_double * 3)(*weights), maps, mask, near.ctypes.data, *geometry.grid)
    noted = ctypes.byref(_motion(motion, geometry))
    strip = np.empty(TILE * TILE * geometry.tiles[1] if motion and not motion.level else 0, np.uint8)
    _write_tiles(sources, pyramids, noted, ctypes.byref(leaves), strip.ctypes.data)


def _motion(motion: Motion | None, geometry: Geometry) -> _Motion:
    if motion is None:
        return _Motion()
    dtype = np.float32 if motion.level else np.uint8
    rows, columns = (tiles * (TILE >> motion.level) for tiles in geometry.tiles)
    return _Motion(
        address(motion.before, dtype, (rows, columns)),
        address(motion.changed, np.bool_, geometry.tiles),
        address(motion.motion, np.float32, geometry.grid),
        motion.scale,
        motion.level,
    )
