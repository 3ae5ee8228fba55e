"""Exact sums over small blocks of whole planes, without a loop over pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WIDER = {np.dtype(np.uint8): np.uint16, np.dtype(np.uint16): np.uint32, np.dtype(np.uint32): np.uint64}


def sums_2x2(values: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Sum of each 2x2 block, in the next wider unsigned type: [2h, 2w] contiguous -> [h, w].

    Two neighbours of a row are read as one wide number, whose halves are then added.
    """
    wide = values.view(_WIDER[values.dtype])
    bits = wide.dtype.itemsize * 4
    pairs = wide >> bits
    pairs += wide & ((1 << bits) - 1)
    sums: NDArray[np.unsignedinteger] = pairs[0::2]
    sums += pairs[1::2]
    return np.ascontiguousarray(sums)


def block_sums(values: NDArray[np.uint8], side: int) -> NDArray[np.unsignedinteger]:
    """Sum of each side x side block (side 2, 4 or 8): [h, w] with h, w multiples of side -> [h/side, w/side]."""
    sums: NDArray[np.unsignedinteger] = np.ascontiguousarray(values)
    while side > 1:
        sums = sums_2x2(sums)
        side //= 2
    return sums
