"""The channel stack: local channels at the analysis level and on the Grid, updated where tiles were written."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from foveate.pipeline.cpu import local_channels as local
from foveate.pipeline.cpu.levels import Levels, PlanePyramid
from foveate.pipeline.cpu.local_channels import Map
from foveate.pipeline.cpu.scratch import Scratch
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import CELL, CELLS_PER_TILE, TILE, TOP_LEVEL, Geometry, Mask, Rect, loose_cover
from foveate.pipeline.update import Update

LOCAL = ("edges", "edges_inverted", "highpass", "lowpass", "saliency")
_MEANS = ("lowpass", "saliency")
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

    def crop(self, values: Map, level: int) -> Map:
        """The inner part of ``values``, which cover the outer rectangle at ``level``."""
        side = CELL >> level
        return values[self.inner.scaled(side).within(self.outer.scaled(side))]


class ChannelStack:
    """float32 maps by name. ``full[name]`` is at the analysis level, ``grid[name]`` one value per cell."""

    def __init__(self, geometry: Geometry, analysis_level: int, colour: Colour) -> None:
        self.level = analysis_level
        self._geometry = geometry
        self._colour = colour
        self._moving = False
        self._scratch = Scratch()
        names = (*LOCAL, "motion")
        self.full = {name: np.zeros(geometry.level(analysis_level), np.float32) for name in names}
        self.grid = {name: np.zeros(geometry.grid, np.float32) for name in names}

    def update(self, levels: Levels, written: Mask) -> None:
        """Recompute the local channels over ``written`` tiles and as far around them as a change reaches."""
        for rect in loose_cover(written):
            cells = rect.scaled(CELLS_PER_TILE)
            inner = cells.grown(1, *self._geometry.grid)
            window = _Window(inner, inner.grown(1, *self._geometry.grid))
            for name, values in self._compute(levels, window).items():
                self._store(name, values, window.inner)

    def _compute(self, levels: Levels, window: _Window) -> dict[str, Map]:
        luma = local.unit_luma(window.read(levels.luma, self.level), self._colour)
        low = local.unit_luma(window.read(levels.luma, _LOWPASS_LEVEL), self._colour)
        low = local.enlarged(low, 1 << (_LOWPASS_LEVEL - self.level))
        maps = {
            "edges": local.edges(luma),
            "edges_inverted": local.edges_inverted(luma),
            "highpass": np.asarray(cv2.absdiff(luma, low), np.float32),
            "lowpass": low,
            "saliency": self._saliency(levels, window),
        }
        return {name: window.crop(values, self.level) for name, values in maps.items()}

    def _saliency(self, levels: Levels, window: _Window) -> Map:
        def read(level: int) -> tuple[Map, Map, Map]:
            luma, cb, cr = (window.read(plane, level) for plane in levels.planes)
            return luma, cb, cr

        saliency = local.centre_surround(read(_SALIENCY_LEVEL), read(TOP_LEVEL), self._colour)
        return local.enlarged(saliency, 1 << (_SALIENCY_LEVEL - self.level))

    def _store(self, name: str, values: Map, cells: Rect) -> None:
        side = CELL >> self.level
        self.full[name][cells.scaled(side).slices] = values
        reduce = local.grid_means if name in _MEANS else local.grid_maxima
        self.grid[name][cells.slices] = reduce(np.ascontiguousarray(values), side)

    def remember(self, levels: Levels) -> Map:
        """Luma at the analysis level as it is now, for ``set_motion`` after the levels were written."""
        samples = levels.luma.level(self.level)
        before = self._scratch.array("before", samples.shape, np.float32)
        np.copyto(before, samples)
        return before

    def set_motion(self, levels: Levels, before: Map | None, update: Update) -> None:
        """|Y - Y the texture held before|: zero outside the changed tiles, and everywhere without ``before``."""
        full, grid = self.full["motion"], self.grid["motion"]
        if self._moving:
            full[:] = 0
            grid[:] = 0
        self._moving = before is not None
        if before is None:
            return
        for rect in loose_cover(update.changed):
            cells = rect.scaled(CELLS_PER_TILE)
            pixels = cells.scaled(CELL >> self.level).slices
            moved = self._difference(levels, before, pixels)
            if update.keyframe:  # tiles that did not count as changed were written too
                moved *= update.changed[rect.slices].repeat(TILE >> self.level, 0).repeat(TILE >> self.level, 1)
            full[pixels] = moved
            grid[cells.slices] = local.grid_maxima(moved, CELL >> self.level)

    def _difference(self, levels: Levels, before: Map, pixels: tuple[slice, slice]) -> Map:
        now = levels.luma.level(self.level)[pixels].astype(np.float32)
        span = np.float32(1.0 / (255.0 if self._colour.full_range else 219.0))
        return np.minimum(np.asarray(cv2.absdiff(now, before[pixels]), np.float32) * span, np.float32(1.0))
