"""What moves: how surely each cell shows a thing that is on its way, from pixels, flow and regions of one colour."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from foveate.pipeline.attributes.background import LEARNING_FRAMES, pans
from foveate.pipeline.flow import Flow, Map
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.native.regions import Filling, Regions, fill_regions, weaken_small
from foveate.pipeline.query.encoder import EmbedderInput

PATIENCE = 2
"""Frames for which a thing still moves that stands."""

_FEW, _MANY = 0.25, 1.0  # share of a cell's samples that hide what rested there: nothing moves; all does
_STIR = 0.2  # share of its samples that change in one frame where all of a cell moves
_SLOW, _FAST = 0.04, 0.15  # cells per frame, against what most of the picture does: the same; another way
_SHAKES = 0.6  # of the picture that changes where the camera moves
_DRIFT = 0.02  # cells per frame that it moves at least
_KEEP, _FAINT = np.float32(0.7), np.float32(0.3)  # of a frame's motion, for the next one; what is too little to keep
_THING = (0.5, 1.0)  # cells that move side by side: nothing to speak of; a thing
_SURE = 0.5  # motion of a cell that speaks for its region
_SPAN, _LEAST = 0.8, 0.08  # of a region's height and width, and of its cells, that must move for all of it to move
_LINGERS = 50  # frames without a change for which what has come to a cell may be the inside of a thing that still moves
_CAME, _MOST = 0.5, 0.5  # share of a cell's samples that hide what rested there: something came; of a region, that came
_WIDE = 0.1  # of the picture: larger regions move only where they are seen to


class Motion:
    """Keeps what moves, over the Grid of one size of frames.

    Where the camera rests, a cell moves as far as it shows other than what rested there, while it changes; where that
    is not known yet, as far as it changes. Where the camera moves, it moves as far as it goes another way than the
    picture does.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._carried = np.zeros(geometry.grid, np.float32)  # of cells where it is not known what rests there
        self._still = np.full(geometry.grid, PATIENCE + 1, np.int32)  # frames since the cell last changed
        self._unsure = 0  # frames until the background can be trusted again, after the camera has moved
        self._moving = self._carried  # cell by cell
        self._came = np.zeros(geometry.grid, np.bool_)  # since it last changed, to where something else rested
        self._rule = Filling(_SURE, _SPAN, _LEAST, _WIDE * geometry.cells, _MOST)
        self._row, self._column = np.indices(geometry.grid, dtype=np.float32)

    def follow(self, view: EmbedderInput) -> None:
        """One frame on. A new scene begins at rest."""
        if view.keyframe is not None and view.keyframe != "periodic":
            self._moving = self._carried = np.zeros_like(self._carried)
            self._still[:] = PATIENCE + 1
            self._came[:] = False
            return
        difference = view.grid["frame_difference"] * view.changed
        mostly = _mostly(view)
        drifts = mostly is not None and np.hypot(*mostly) >= _DRIFT
        self._unsure = LEARNING_FRAMES if pans(difference) or drifts else max(self._unsure - 1, 0)
        if self._unsure == LEARNING_FRAMES:
            now = np.zeros_like(self._carried)
            if view.flow is not None:
                now = _apart(view.flow, mostly or _median(view.flow)) * (difference > 0)
            self._moving = self._carried = np.maximum(now, self._kept(view))
            self._came[:] = False
        else:
            self._moving = self._in_place(view, difference)
        if self.rests and not view.changed.any():  # all has come to rest; such frames are not counted from now on
            self._came[:] = False

    @property
    def rests(self) -> bool:
        """True where no cell of the last frame moves."""
        return not self._moving.any()

    def shown(self, regions: Callable[[], Regions]) -> Map:
        """How surely each cell of the last frame moves, float32[grid] in [0, 1].

        ``regions`` gives those of its colours, and is asked only where something moves.
        """
        moving = self._moving.copy()
        if self.rests:
            return moving
        weaken_small(moving, *_THING)  # a gust in a leaf, a flap of tape, what coding leaves behind
        if self._unsure == 0 and moving.any():
            lately = self._came & (self._still <= _LINGERS)
            fill_regions(moving, lately, regions(), self._rule)  # things show no change inside, where they are plain
        return moving

    def _in_place(self, view: EmbedderInput, difference: Map) -> Map:
        foreground = view.grid["foreground"]
        known = (foreground >= 0) & (self._unsure == 0)
        self._still = np.where(difference > 0, np.int32(0), self._still + 1)
        changing = np.maximum(_ramp(difference, 0, _STIR), self._kept(view))
        self._carried = np.where(known, np.float32(0), changing)
        came = foreground >= _CAME  # remembered: inside a plain thing on its way, cells soon rest and no longer tell it
        self._came = known & np.where(difference >= _FEW, came, self._came | came)
        return np.where(known, _ramp(foreground, _FEW, _MANY) * (self._still <= PATIENCE), changing)

    def _kept(self, view: EmbedderInput) -> Map:
        """The motion of the frame before, a little less, at where it has moved to."""
        if not self._carried.any():
            return self._carried
        kept = self._carried * _KEEP
        kept[kept < _FAINT] = 0
        if view.flow is None:
            return kept
        x, y = self._column + view.flow.dx, self._row + view.flow.dy
        return np.asarray(cv2.remap(kept, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.float32)


def _mostly(view: EmbedderInput) -> tuple[float, float] | None:
    """How far most of the picture has moved, in cells, where so much changed that it may be the camera; else None."""
    if view.flow is None or np.count_nonzero(view.changed) < _SHAKES * view.changed.size:
        return None
    return _median(view.flow)


def _median(flow: Flow) -> tuple[float, float]:
    """Those of dx and dy. A Grid has an even number of cells: the mean of the two in the middle."""
    middle = flow.dx.size // 2
    parts = (np.partition(each.ravel(), (middle - 1, middle))[middle - 1 : middle + 1] for each in (flow.dx, flow.dy))
    dx, dy = (part.mean() for part in parts)
    return dx, dy


def _apart(flow: Flow, mostly: tuple[float, float]) -> Map:
    """How surely each cell moves another way than most of the picture; 0 where flow is unsure."""
    away = np.hypot(flow.dx - mostly[0], flow.dy - mostly[1])
    return _ramp(np.where(flow.confidence > 0, away, np.float32(0)), _SLOW, _FAST)


def _ramp(values: Map, none: float, full: float) -> Map:
    return np.asarray(np.clip((values - np.float32(none)) / np.float32(full - none), 0, 1), np.float32)
