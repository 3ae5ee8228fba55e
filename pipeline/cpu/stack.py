"""The channel stack: local channels at the analysis level and on the Grid, updated where tiles were written."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from foveate.pipeline.channels import BY_NAME, CHANNELS
from foveate.pipeline.cpu import local_channels as local
from foveate.pipeline.cpu.levels import Levels, PlanePyramid
from foveate.pipeline.cpu.local_channels import Map
from foveate.pipeline.cpu.scratch import Scratch
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import CELL, CELLS_PER_TILE, TOP_LEVEL, Geometry, Mask, Rect, loose_cover, tiles_to_cells

LOCAL = tuple(channel.name for channel in CHANNELS if channel.group == "local" and channel.name != "text")
_MARGIN = -(-max(BY_NAME[name].reach or 0 for name in LOCAL) // CELL)  # cells around a change that see it
_LOWPASS_LEVEL = 3
_SALIENCY_LEVEL = 2


@dataclass(frozen=True, slots=True)
class _Window:
    """A rectangle of cells to compute, and the wider one that must be read for it."""

    inner: Rect
    outer: Rect

    def read(self, pyramid: PlanePyramid, level: int) -> Map:
        """Samples of ``level`` over the outer rectangle."""
        return np.ascontiguousarray(pyramid.level(level)[self.outer.scaled(CELL >> level).slices], np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of cells of the outer rectangle."""
        return self.outer.bottom - self.outer.top, self.outer.right - self.outer.left

    def crop(self, values: Map) -> Map:
        """The inner part of a map over the outer rectangle, one value per cell."""
        return values[self.inner.within(self.outer)]


class ChannelStack:
    """The local channels, computed at the analysis level and kept as ``grid[name]``, float32[grid].

    Their reduction to the Grid is all that the Cascade reads; so nothing else of them is stored.
    """

    def __init__(self, geometry: Geometry, analysis_level: int, colour: Colour) -> None:
        self._level = analysis_level
        self._side = CELL >> analysis_level
        self._geometry = geometry
        self._colour = colour
        self.moving = False  # whether the motion channel holds anything
        self._scratch = Scratch()
        self.grid = {name: np.zeros(geometry.grid, np.float32) for name in LOCAL}

    def update(self, levels: Levels, written: Mask) -> None:
        """Recompute the local channels over ``written`` tiles and as far around them as a change reaches."""
        for rect in loose_cover(written):
            cells = rect.scaled(CELLS_PER_TILE)
            inner = cells.grown(_MARGIN, *self._geometry.grid)
            window = _Window(inner, inner.grown(_MARGIN, *self._geometry.grid))
            for name, values in self._compute(levels, window).items():
                self.grid[name][inner.slices] = window.crop(values)

    def _compute(self, levels: Levels, window: _Window) -> dict[str, Map]:
        """The channels over the window's cells; right for its inner ones.

        Scales, roots and clips change places with maxima, so that they are taken once per cell.
        """
        scratch, span = self._scratch, np.float32(local.luma_range(self._colour)[1])
        samples = window.read(levels.luma, self._level)
        shape = samples.shape
        both = scratch.array("light and dark", (2, *shape), np.float32)
        light = local.above_black(samples, self._colour, both[0])
        np.subtract(span, light, out=both[1])
        detail = scratch.array("detail", (3, *shape), np.float32)
        low = self._lowpass(levels, window)
        cv2.absdiff(light, low, dst=detail[2])
        local.squared_gradients(np.sqrt(both, out=both), detail[:2], scratch)
        greatest = local.grid_maxima(detail.reshape(-1, shape[1]), self._side, scratch).reshape(3, *window.shape)
        edges = np.minimum(np.sqrt(greatest[:2] / span), np.float32(1.0))
        return {
            "edges": edges[0],
            "edges_inverted": edges[1],
            "highpass": greatest[2] / span,
            "lowpass": local.grid_means(low, self._side) / span,
            "saliency": self._saliency(levels, window),
        }

    def _lowpass(self, levels: Levels, window: _Window) -> Map:
        coarse = window.read(levels.luma, _LOWPASS_LEVEL)
        coarse = local.above_black(coarse, self._colour, self._scratch.array("low", coarse.shape, np.float32))
        return local.enlarged(coarse, 1 << (_LOWPASS_LEVEL - self._level), "lowpass", self._scratch)

    def _saliency(self, levels: Levels, window: _Window) -> Map:
        def read(level: int) -> tuple[Map, Map, Map]:
            luma, cb, cr = (window.read(plane, level) for plane in levels.planes)
            return luma, cb, cr

        saliency = local.centre_surround(read(_SALIENCY_LEVEL), read(TOP_LEVEL), self._colour, self._scratch)
        return local.grid_means(saliency, CELL >> _SALIENCY_LEVEL)

    def remember(self, levels: Levels) -> Map:
        """Luma at the analysis level as it is now, for ``set_motion`` after the levels were written."""
        samples = levels.luma.level(self._level)
        before = self._scratch.array("before", samples.shape, np.float32)
        np.copyto(before, samples)
        return before

    def set_motion(self, levels: Levels, before: Map | None, update: Update) -> None:
        """|Y - Y the texture held before|: zero outside the changed tiles, and everywhere without ``before``."""
        motion = self.grid["motion"]
        if self.moving:
            motion[:] = 0
        self.moving = before is not None
        if before is None:
            return
        span = np.float32(1.0 / local.luma_range(self._colour)[1])
        for rect in loose_cover(update.changed):
            cells = rect.scaled(CELLS_PER_TILE)
            pixels = cells.scaled(self._side).slices
            now = levels.luma.level(self._level)[pixels].astype(np.float32, copy=False)
            moved = local.difference(now, before[pixels], "moved", self._scratch)
            moved = local.grid_maxima(moved, self._side, self._scratch)
            # A keyframe also writes tiles that did not count as changed.
            there = tiles_to_cells(update.changed[rect.slices])
            motion[cells.slices] = np.minimum(moved * span, np.float32(1.0)) * there
