"""Copying the tiles of a mask from one plane to another."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Mask, Rect, around


class TileMask:
    """A set of tiles, with what copying them needs worked out once for all planes of a size."""

    def __init__(self, tiles: Mask) -> None:
        self.tiles = tiles
        self._box = around(tiles) if tiles.any() else Rect(0, 0, 0, 0)
        self._dense = bool(tiles[self._box.index].all())
        self._pixels: dict[int, NDArray[np.uint8]] = {}

    def copy(self, source: NDArray[Any], target: NDArray[Any], side: int) -> None:
        """Copy the tiles, ``side`` samples wide, of ``source``; it may end where the last tiles have begun."""
        area = self._box.scaled(side).index
        pixels, into = source[area], target[area]
        rows, columns = pixels.shape
        if self._dense:
            into[:rows, :columns] = pixels
        else:
            cv2.copyTo(pixels, self._mask(side)[:rows, :columns], into[:rows, :columns])

    def _mask(self, side: int) -> NDArray[np.uint8]:
        if side not in self._pixels:
            inner = self.tiles[self._box.index].view(np.uint8)
            size = (inner.shape[1] * side, inner.shape[0] * side)
            self._pixels[side] = np.asarray(cv2.resize(inner, size, interpolation=cv2.INTER_NEAREST), np.uint8)
        return self._pixels[side]
