"""Calls change.c: the tiles in which two pictures differ, and copies of tiles."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Mask
from foveate.pipeline.native.library import POINTER, Plane, address, kernel, plane

_INT = ctypes.c_int32
_changed_tiles = kernel("changed_tiles", POINTER, POINTER, POINTER, ctypes.c_double, _INT, _INT, POINTER)
_noise_level = kernel("noise_level", POINTER, _INT, _INT, POINTER, result=_INT)
_copy_tiles = kernel("copy_tiles", POINTER, POINTER, _INT, _INT, _INT, _INT, POINTER)

_Planes = Sequence[NDArray[np.uint8]]
_Sides = _INT * 3


def changed_tiles(
    now: _Planes, reference: _Planes, sides: Sequence[int], threshold: float, tiles: tuple[int, int]
) -> Mask:
    """bool[tiles]: the mean absolute difference of any block of any of the three planes exceeds ``threshold``.

    ``sides`` are the samples along a block of each plane, 8 or 4: a quarter of a tile's. The edge is repeated to whole
    blocks. Raises ValueError for planes of different shapes.
    """
    _same_shapes(now, reference)
    mask = np.empty(tiles, np.bool_)
    both = ((Plane * 3)(*map(plane, planes)) for planes in (now, reference))
    _changed_tiles(*both, _Sides(*sides), threshold, *tiles, mask.ctypes.data)
    return mask


def noise_level(luma: NDArray[np.uint8], before: NDArray[np.uint8]) -> int:
    """Noise level: lower quartile of the blocks' mean differences from frame to frame, in eighths of a grey value.

    ``before``, uint8[tile rows, tile columns, 64], holds the top left 8x8 block of each tile of the frame before, and
    becomes this one's. Blocks in which most pixels change in the same direction count as 0: that is not noise.
    """
    rows, columns, _ = before.shape
    at = address(before, np.uint8, (rows, columns, 64))
    return int(_noise_level(ctypes.byref(plane(luma)), rows, columns, at))


def copy_tiles(source: NDArray[Any], target: NDArray[Any], side: int, mask: Mask) -> None:
    """Copy the tiles of ``mask``, ``side`` samples each, between planes of one shape that may end inside a tile."""
    if source.dtype != target.dtype:
        raise ValueError(f"planes must have one type, got {source.dtype} and {target.dtype}")
    _same_shapes((source,), (target,))
    both = (ctypes.byref(plane(samples.view(np.uint8))) for samples in (source, target))
    tiles, bytes_across = mask.shape, side * source.itemsize
    _copy_tiles(*both, side, bytes_across, *tiles, address(mask, np.bool_, tiles))


def _same_shapes(first: _Planes, second: _Planes) -> None:
    for one, other in zip(first, second, strict=True):
        if one.shape != other.shape:
            raise ValueError(f"planes must have one shape, got {one.shape} and {other.shape}")
