"""Exact sums over small blocks of whole planes, without a loop over pixels."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cpu.scratch import Scratch
from foveate.pipeline.geometry import Mask

_WIDER: dict[np.dtype[Any], Any] = {
    np.dtype(np.uint8): np.uint16,
    np.dtype(np.uint16): np.uint32,
    np.dtype(np.uint32): np.uint64,
}


def block_sums(values: NDArray[Any], side: int, scratch: Scratch) -> NDArray[Any]:
    """Sum of each side x side block (side 2, 4 or 8) of a contiguous unsigned array: [h, w] -> [h/side, w/side].

    Two neighbours of a row are read as one number of twice the width, whose halves are then added; so the sums
    cannot overflow. h and w must be multiples of side. The result lives in ``scratch``.
    """
    while side > 1:
        wide = values.view(_WIDER[values.dtype])
        bits = wide.dtype.itemsize * 4
        pairs = np.right_shift(wide, bits, out=scratch.array(f"pairs{side}", wide.shape, wide.dtype.type))
        low = np.bitwise_and(wide, (1 << bits) - 1, out=scratch.array(f"low{side}", wide.shape, wide.dtype.type))
        pairs += low
        half = (wide.shape[0] // 2, wide.shape[1])
        values = np.add(pairs[0::2], pairs[1::2], out=scratch.array(f"sums{side}", half, wide.dtype.type))
        side //= 2
    return values


def blocks_over(values: NDArray[np.uint8], side: int, mean: float, scratch: Scratch) -> tuple[Mask, Mask]:
    """Two bool[h/side, w/side]: blocks (side 4 or 8) whose mean surely exceeds ``mean``, and those that may.

    OpenCV halves a picture faster than anything, but rounds: a 2x2 sum is known within 2. So most blocks are settled by
    the halved picture; ``block_means`` settles the others. ``values`` are contiguous.
    """
    height, width = values.shape
    halved = scratch.array(f"halved{side}", (height // 2, width // 2), np.uint8)
    cv2.resize(values, (width // 2, height // 2), dst=halved, interpolation=cv2.INTER_AREA)
    sums = block_sums(halved, side // 2, scratch)
    limit, doubt = mean * side * side / 4, (side // 2) ** 2 / 2
    return sums > limit + doubt, sums > limit - doubt


def block_means(values: NDArray[np.uint8], side: int, row: NDArray[np.intp], column: NDArray[np.intp]) -> NDArray[Any]:
    """Exact means of some blocks: float64[n]."""
    height, width = values.shape
    blocks = values.reshape(height // side, side, width // side, side)[row, :, column, :]
    return blocks.reshape(len(row), side * side).mean(axis=1)
