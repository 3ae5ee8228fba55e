"""The RGB pyramid of the CPU engine, kept as the decoder's own planes: luma, Cb and Cr, each with its levels.

Colour conversion is linear, so a box mean of planes converts to the box mean of R'G'B'; only the few patches that
are selected are ever converted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from foveate.pipeline.cpu.change import Planes
from foveate.pipeline.geometry import TILE, TOP_LEVEL, Geometry, Mask
from foveate.pipeline.native.change import copy_tiles
from foveate.pipeline.native.levels import Motion, Pyramid, pyramid, write_tiles
from foveate.pipeline.spec.errors import CHROMA_WEIGHT as CHROMA_WEIGHT

Zeros = Callable[[tuple[int, ...], DTypeLike], NDArray[Any]]
"""Makes arrays filled with zeros: ``np.zeros``, or in memory that a device can copy to."""


class PlanePyramid:
    """One plane at every level from ``base`` (its own resolution: 0, or 1 for halved chroma) to 4.

    The base is uint8 in 8-bit units; coarser levels are float32, exact 2x2 means in the same units.
    """

    def __init__(self, geometry: Geometry, base: int, zeros: Zeros = np.zeros) -> None:
        self.base = base
        self.pixels: NDArray[np.uint8] = zeros(geometry.level(base), np.uint8)
        self.coarse: list[NDArray[np.float32]] = [
            zeros(geometry.level(k), np.float32) for k in range(base + 1, TOP_LEVEL + 1)
        ]

    def level(self, level: int) -> NDArray[Any]:
        """The samples of ``level``, uint8 at the base, else float32; for a level finer than the base, the base."""
        return self.pixels if level <= self.base else self.coarse[level - self.base - 1]

    def copy_tiles(self, other: PlanePyramid, tiles: Mask) -> None:
        """Copy ``tiles`` of all levels from ``other``."""
        for level in range(self.base, TOP_LEVEL + 1):
            copy_tiles(other.level(level), self.level(level), TILE >> level, tiles)


class Levels:
    """The whole picture at every level: three plane pyramids of one size.

    ``errors[k - 1]`` is, for each cell, the squared error (8-bit units squared, summed over its level-0 pixels and all
    planes, chroma by CHROMA_WEIGHT) of showing it at level k, k in 1..4, enlarged bilinearly as readers paint it,
    instead of the base. float32[grid]; see native/leaf_errors.c.
    """

    def __init__(self, geometry: Geometry, subsampled: bool, zeros: Zeros = np.zeros) -> None:
        self._geometry = geometry
        chroma_base = 1 if subsampled else 0
        self.luma = PlanePyramid(geometry, 0, zeros)
        self.cb = PlanePyramid(geometry, chroma_base, zeros)
        self.cr = PlanePyramid(geometry, chroma_base, zeros)
        self.errors: tuple[NDArray[np.float32], ...] = tuple(zeros(geometry.grid, np.float32) for _ in range(TOP_LEVEL))
        self.pyramids = (Pyramid * 3)(*(pyramid(plane.pixels, plane.coarse, plane.base) for plane in self.planes))

    @property
    def planes(self) -> tuple[PlanePyramid, PlanePyramid, PlanePyramid]:
        """Luma, Cb, Cr."""
        return self.luma, self.cb, self.cr

    @property
    def weights(self) -> tuple[float, float, float]:
        """Weight of the squared error of a sample of each plane; a sample of halved chroma stands for four pixels."""
        chroma = CHROMA_WEIGHT * 4**self.cb.base
        return 1.0, chroma, chroma

    def update(self, planes: Planes, written: Mask, motion: Motion | None = None) -> None:
        """Write the tiles of ``written`` and rebuild exactly what depends on them; update the ``motion`` map."""
        write_tiles(planes, self.pyramids, self.weights, self.errors, self._geometry, written, motion)

    def copy_tiles(self, other: Levels, tiles: Mask) -> None:
        """Copy ``tiles`` of pixels and levels from ``other``, and the errors of all cells."""
        for mine, theirs in zip(self.planes, other.planes, strict=True):
            mine.copy_tiles(theirs, tiles)
        for target, source in zip(self.errors, other.errors, strict=True):
            np.copyto(target, source)


class LevelRing:
    """Several copies of the Levels, so that one can be read while the next is written.

    Each copy remembers the tiles in which it lags behind the newest; they are copied when its turn comes.
    """

    def __init__(self, geometry: Geometry, subsampled: bool, copies: int) -> None:
        self._slots = [Levels(geometry, subsampled) for _ in range(copies)]
        self._stale = [np.zeros(geometry.tiles, np.bool_) for _ in range(copies)]
        self._newest = 0

    @property
    def newest(self) -> Levels:
        """The copy that was written last."""
        return self._slots[self._newest]

    def update(self, planes: Planes, written: Mask, motion: Motion | None) -> Levels:
        """Write into the oldest copy and return it. It stays as it is for the next ``copies - 1`` updates."""
        turn = (self._newest + 1) % len(self._slots)
        slot, lag = self._slots[turn], self._stale[turn] & ~written
        if lag.any():
            slot.copy_tiles(self.newest, lag)
        slot.update(planes, written, motion)
        for stale in self._stale:
            stale |= written
        self._stale[turn][:] = False
        self._newest = turn
        return slot
