"""The RGB pyramid of the CPU engine, kept as the decoder's own planes: luma, Cb and Cr, each with its levels.

Colour conversion is linear, so a box mean of planes converts to the box mean of R'G'B'; only the few patches that
are selected are ever converted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cpu.change import Planes
from foveate.pipeline.cpu.scratch import Scratch
from foveate.pipeline.cpu.tile_mask import TileMask
from foveate.pipeline.geometry import CELLS_PER_TILE, TILE, TOP_LEVEL, Geometry, Mask

_STRIP = 320_000
"""Samples worked on at a time: as float32 they still fit a processor's own cache, which a whole picture does not."""
Samples = NDArray[np.float32]

CHROMA_WEIGHT = 0.25
"""Weight of a squared chroma error against a luma error of the same pixel: what 4:2:0 codecs count, at any sampling."""


def halve(samples: NDArray[np.float32], into: Samples) -> Samples:
    """Mean of each 2x2 block: [2h, 2w] -> ``into`` [h, w]. Exact for sums that fit a float's 24 bits."""
    height, width = into.shape
    cv2.resize(samples, (width, height), dst=into, interpolation=cv2.INTER_AREA)
    return into


def cell_means(samples: Samples, level: int, scratch: Scratch) -> Samples:
    """Mean over each cell of ``samples`` of ``level``: float32[grid], in ``scratch``; level 4 is returned as it is."""
    for k in range(level + 1, TOP_LEVEL + 1):
        height, width = samples.shape
        samples = halve(samples, scratch.array(f"mean{k}", (height // 2, width // 2), np.float32))
    return samples


class PlanePyramid:
    """One plane at every level from ``base`` (its own resolution: 0, or 1 for halved chroma) to 4.

    The base is uint8 in 8-bit units; coarser levels are float32, exact 2x2 means in the same units.
    """

    def __init__(self, geometry: Geometry, base: int) -> None:
        self.base = base
        self.pixels = np.zeros(geometry.level(base), np.uint8)
        self.coarse = [np.zeros(geometry.level(k), np.float32) for k in range(base + 1, TOP_LEVEL + 1)]

    def level(self, level: int) -> NDArray[Any]:
        """The samples of ``level``, uint8 at the base, else float32; where it is finer than the base, the base."""
        return self.pixels if level <= self.base else self.coarse[level - self.base - 1]

    def write(self, plane: NDArray[np.uint8], tiles: TileMask) -> None:
        """Copy ``tiles`` of ``plane`` (unpadded) into the base, repeating its edge into the padding."""
        tiles.copy(plane, self.pixels, TILE >> self.base)
        height, width = plane.shape
        if width < self.pixels.shape[1]:
            self.pixels[:, width:] = self.pixels[:, width - 1 : width]
        if height < self.pixels.shape[0]:
            self.pixels[height:] = self.pixels[height - 1]

    def rebuild(self, tiles: TileMask, scratch: Scratch) -> Iterator[tuple[int, Samples]]:
        """Recompute the coarse levels over ``tiles`` from the base, finest first.

        Yields each level with its error: per sample, the mean squared difference of the base to it. By Haar and
        Parseval that is the mean square of the base less the square of its mean. Valid until the next one.
        """
        pixels = tiles.window(self.pixels, TILE >> self.base)
        fine = scratch.array("fine", pixels.shape, np.float32)
        np.copyto(fine, pixels)
        squares = np.multiply(fine, fine, out=scratch.array("squares", fine.shape, np.float32))
        for level, coarse in enumerate(self.coarse, start=self.base + 1):
            fine = halve(fine, tiles.target(coarse, TILE >> level, f"level{level}", scratch))
            tiles.store(fine, coarse, TILE >> level)
            squares = halve(squares, scratch.array(f"squares{level}", fine.shape, np.float32))
            error = np.multiply(fine, fine, out=scratch.array(f"error{level}", fine.shape, np.float32))
            yield level, np.subtract(squares, error, out=error)

    def copy_tiles(self, other: PlanePyramid, tiles: TileMask) -> None:
        """Take over ``tiles`` from ``other``, all levels."""
        tiles.copy(other.pixels, self.pixels, TILE >> self.base)
        for offset, (target, source) in enumerate(zip(self.coarse, other.coarse, strict=True)):
            tiles.copy(source, target, TILE >> (self.base + 1 + offset))


class Levels:
    """The whole picture at every level: three plane pyramids of one size.

    ``errors[k - 1]`` is, for each cell, the squared error (8-bit units squared, summed over its level-0 pixels and all
    planes, chroma by CHROMA_WEIGHT) of showing it at level k, k in 1..4, instead of the base. float32[grid].
    """

    def __init__(self, geometry: Geometry, subsampled: bool, scratch: Scratch) -> None:
        self._scratch = scratch
        chroma_base = 1 if subsampled else 0
        self.luma = PlanePyramid(geometry, 0)
        self.cb = PlanePyramid(geometry, chroma_base)
        self.cr = PlanePyramid(geometry, chroma_base)
        self.errors = tuple(np.zeros(geometry.grid, np.float32) for _ in range(TOP_LEVEL))

    @property
    def planes(self) -> tuple[PlanePyramid, PlanePyramid, PlanePyramid]:
        """Luma, Cb, Cr."""
        return self.luma, self.cb, self.cr

    def update(self, planes: Planes, written: TileMask) -> None:
        """Write the tiles of ``written`` and rebuild exactly what depends on them."""
        for pyramid, plane in zip(self.planes, planes, strict=True):
            pyramid.write(plane, written)
        rows = max(1, _STRIP // (TILE * self.luma.pixels.shape[1]))
        for strip in written.strips(rows):
            self._rebuild(strip)

    def _rebuild(self, tiles: TileMask) -> None:
        totals: dict[int, Samples] = {}
        for level, error in self.luma.rebuild(tiles, self._scratch):
            totals[level] = self._scratch.array(f"total{level}", error.shape, np.float32)
            np.copyto(totals[level], error)
        for chroma in (self.cb, self.cr):
            for level, error in chroma.rebuild(tiles, self._scratch):
                cv2.scaleAdd(error, CHROMA_WEIGHT, totals[level], dst=totals[level])
        for (level, total), error in zip(totals.items(), self.errors, strict=True):
            mean = cell_means(total, level, self._scratch)
            cells = tiles.target(error, CELLS_PER_TILE, "cells", self._scratch)
            np.maximum(mean * np.float32(4**TOP_LEVEL), np.float32(0.0), out=cells)
            tiles.store(cells, error, CELLS_PER_TILE)

    def copy_tiles(self, other: Levels, tiles: Mask) -> None:
        """Take over ``tiles`` from ``other``: pixels and levels. The errors are taken over whole."""
        mask = TileMask(tiles)
        for mine, theirs in zip(self.planes, other.planes, strict=True):
            mine.copy_tiles(theirs, mask)
        for target, source in zip(self.errors, other.errors, strict=True):
            np.copyto(target, source)


class LevelRing:
    """Several copies of the Levels, so that one can be read while the next is written.

    Each copy remembers the tiles in which it lags behind the newest; they are copied when its turn comes.
    """

    def __init__(self, geometry: Geometry, subsampled: bool, copies: int) -> None:
        scratch = Scratch()
        self._slots = [Levels(geometry, subsampled, scratch) for _ in range(copies)]
        self._stale = [np.zeros(geometry.tiles, np.bool_) for _ in range(copies)]
        self._newest = 0

    @property
    def newest(self) -> Levels:
        """The copy that was written last."""
        return self._slots[self._newest]

    def update(self, planes: Planes, written: TileMask) -> Levels:
        """Write into the oldest copy and return it. It stays as it is for the next ``copies - 1`` updates."""
        turn = (self._newest + 1) % len(self._slots)
        slot, lag = self._slots[turn], self._stale[turn] & ~written.tiles
        if lag.any():
            slot.copy_tiles(self.newest, lag)
        slot.update(planes, written)
        for stale in self._stale:
            stale |= written.tiles
        self._stale[turn][:] = False
        self._newest = turn
        return slot
