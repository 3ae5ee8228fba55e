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
        self.any = bool(tiles.any())
        self.all = bool(tiles.all())
        self._box = around(tiles) if self.any else Rect(0, 0, 0, 0)
        self._dense = bool(tiles[self._box.slices].all())
        self._pixels: dict[int, NDArray[np.uint8]] = {}

    def copy(self, source: NDArray[Any], target: NDArray[Any], side: int) -> None:
        """Copy the tiles, ``side`` samples wide, of ``source``; it may end where the last tiles have begun."""
        area = self._box.scaled(side).slices
        pixels, into = source[area], target[area]
        rows, columns = pixels.shape
        if self._dense:
            into[:rows, :columns] = pixels
        else:
            cv2.copyTo(pixels, self._mask(side)[:rows, :columns], into[:rows, :columns])

    def _mask(self, side: int) -> NDArray[np.uint8]:
        mask = self._pixels.get(side)
        if mask is None:
            inner = self.tiles[self._box.slices].view(np.uint8)
            mask = self._pixels[side] = inner.repeat(side, axis=1).repeat(side, axis=0)
        return mask
