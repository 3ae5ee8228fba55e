"""A set of tiles, and the two ways of working on it in whole arrays: as one rectangle, or gathered side by side."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cpu.scratch import Scratch
from foveate.pipeline.geometry import Mask, Rect, around, as_blocks

_DENSE = 0.5
"""Share of its bounding box above which a set is worked on as the whole box, which then costs less than gathering."""


class TileMask:
    """A set of tiles. ``side`` is always the number of samples along a tile in the array at hand."""

    def __init__(self, tiles: Mask) -> None:
        self.tiles = tiles
        self.any = bool(tiles.any())
        self.all = bool(tiles.all())
        self._box = around(tiles) if self.any else Rect(0, 0, 0, 0)
        inner = tiles[self._box.slices]
        self._full = bool(inner.all())
        self._dense = self.any and float(inner.mean()) > _DENSE
        self._pixels: dict[int, NDArray[np.uint8]] = {}

    def copy(self, source: NDArray[Any], target: NDArray[Any], side: int) -> None:
        """Copy exactly the tiles of ``source``, which may end inside its last tiles, to ``target``."""
        area = self._box.scaled(side).slices
        pixels, into = source[area], target[area]
        rows, columns = pixels.shape
        if self._full:
            into[:rows, :columns] = pixels
        else:
            cv2.copyTo(pixels, self._mask(side)[:rows, :columns], into[:rows, :columns])

    def _mask(self, side: int) -> NDArray[np.uint8]:
        mask = self._pixels.get(side)
        if mask is None:
            inner = self.tiles[self._box.slices].view(np.uint8)
            mask = self._pixels[side] = inner.repeat(side, axis=1).repeat(side, axis=0)
        return mask

    def window(self, plane: NDArray[Any], side: int) -> NDArray[Any]:
        """Samples of a whole plane to compute from: a view of the box, [h, w], or a row of tiles, [side, n*side].

        A block inside a tile is one in the window too, and windows of all levels correspond.
        """
        if self._dense:
            return plane[self._box.scaled(side).slices]
        row, column = self._places
        return as_blocks(plane, side)[row, :, column, :].transpose(1, 0, 2).reshape(side, -1)

    def target(self, plane: NDArray[Any], side: int, name: str, scratch: Scratch) -> NDArray[Any]:
        """Where to compute what belongs into ``plane``: to be given to ``store``, which puts it there."""
        if self._dense:
            return plane[self._box.scaled(side).slices]
        return scratch.array(name, (side, len(self._places[0]) * side), plane.dtype.type)

    def store(self, values: NDArray[Any], plane: NDArray[Any], side: int) -> None:
        """Put what was computed in ``target`` into ``plane``. A dense set covers the rest of its box as well."""
        if not self._dense:
            row, column = self._places
            as_blocks(plane, side)[row, :, column, :] = values.reshape(side, -1, side).transpose(1, 0, 2)

    def strips(self, rows: int) -> list[TileMask]:
        """The set in bands of at most ``rows`` rows of tiles; a set that is not dense stays whole."""
        if not self._dense or self._box.bottom - self._box.top <= rows:
            return [self] if self.any else []
        bands = []
        for top in range(self._box.top, self._box.bottom, rows):
            band = np.zeros_like(self.tiles)
            band[top : top + rows] = self.tiles[top : top + rows]
            bands.append(TileMask(band))
        return [band for band in bands if band.any]

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        row, column = np.nonzero(self.tiles)
        return row, column
