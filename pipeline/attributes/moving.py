"""Motion: confidence that each cell shows a moving object, from the background model, flow and colour regions."""

from collections.abc import Callable

import cv2
import numpy as np

from foveate.pipeline.attributes.background import LEARNING_FRAMES, pans
from foveate.pipeline.attributes.weather import Weather
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import Geometry, Map
from foveate.pipeline.native.regions import Filling, Regions, fill_regions, weaken_small
from foveate.pipeline.query.encoder import EmbedderInput

PATIENCE = 2
"""Frames without a change for which an object still counts as moving."""

_FEW, _MANY = 0.25, 0.6  # share of foreground samples of a cell with confidence 0 and 1
_STIR = 0.2  # share of changed samples of a cell with confidence 1
_SLOW, _FAST = 0.04, 0.15  # cells per frame, relative to most of the picture, with confidence 0 and 1
_SHAKES = 0.6  # share of cells that change if the camera moves
_DRIFT = 0.02  # least camera motion, in cells per frame
_KEEP, _FAINT = np.float32(0.7), np.float32(0.3)  # decay per frame; confidence below which it drops to 0
_THING = (0.5, 1.0)  # adjacent moving cells: noise; an object
_SURE = 0.5  # confidence from which on a cell counts for its region
_SPAN, _LEAST = 0.8, 0.08  # share of a region's height and width, and of its cells, that must move to fill it
_LINGERS = 50  # frames without a change for which a foreground cell may be the plain inside of a moving object
_CAME, _MOST = 0.5, 0.5  # share of foreground samples of a foreground cell; of such cells in a region
_WIDE = 0.1  # share of the picture: larger regions are not filled


class Motion:
    """Tracks motion over the Grid of frames of one size.

    With a still camera, a cell's motion is its share of foreground while it changes, or the share that changes where
    the background is not known yet; either beyond what rain changes. With a moving camera, it is the difference of its
    flow from the picture's median.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._carried = np.zeros(geometry.grid, np.float32)  # motion of cells whose background is unknown
        self._still = np.full(geometry.grid, PATIENCE + 1, np.int32)  # frames since the cell last changed
        self._weather = Weather()
        self._unsure = 0  # frames until the background can be trusted again, after the camera has moved
        self._moving = self._carried  # each cell by itself
        self._came = np.zeros(geometry.grid, np.bool_)  # cells that were foreground when they last changed
        self._rule = Filling(_SURE, _SPAN, _LEAST, _WIDE * geometry.cells, _MOST)
        self._row, self._column = np.indices(geometry.grid, dtype=np.float32)

    def update(self, view: EmbedderInput) -> None:
        """Advance by one frame. A new scene starts without motion."""
        if view.keyframe is not None and view.keyframe != "periodic":
            self._moving = self._carried = np.zeros_like(self._carried)
            self._still[:] = PATIENCE + 1
            self._came[:] = False
            self._weather.reset()
            return
        difference = view.grid["frame_difference"] * view.changed
        camera = _camera_motion(view)
        drifts = camera is not None and np.hypot(*camera) >= _DRIFT
        rain = self._weather.update(difference)
        sweeps = not rain and (pans(difference) or drifts)
        self._unsure = LEARNING_FRAMES if sweeps else max(self._unsure - 1, 0)
        if self._unsure == LEARNING_FRAMES:
            now = np.zeros_like(self._carried)
            if view.flow is not None:
                now = _apart(view.flow, camera or _median(view.flow)) * (difference > 0)
            self._moving = self._carried = np.maximum(now, self._kept(view))
            self._came[:] = False
        else:
            self._moving = self._in_place(view, difference, rain)
        if self.still and not view.changed.any():  # all is still: there are no updates until the next change
            self._came[:] = False

    @property
    def still(self) -> bool:
        """True if no cell of the last frame moves."""
        return not self._moving.any()

    def moving(self, regions: Callable[[], Regions]) -> Map:
        """Confidence that each cell of the last frame moves, float32[grid] in [0, 1].

        ``regions`` returns its colour regions; it is called only if something moves.
        """
        moving = self._moving.copy()
        if self.still:
            return moving
        weaken_small(moving, *_THING)  # leaves in the wind, coding artefacts
        if self._unsure == 0 and moving.any():
            lately = self._came & (self._still <= _LINGERS)
            fill_regions(moving, lately, regions(), self._rule)  # plain objects show no change inside
        return moving

    def _in_place(self, view: EmbedderInput, difference: Map, rain: float) -> Map:
        """Each cell's motion before a still camera, beyond the share of its samples that ``rain`` changes."""
        foreground = view.grid["foreground"]
        known = (foreground >= 0) & (self._unsure == 0)
        self._still = np.where(difference > 0, np.int32(0), self._still + 1)
        changing = np.maximum(_ramp(difference, rain, rain + _STIR), self._kept(view))
        self._carried = np.where(known, np.float32(0), changing)
        came = foreground >= _CAME  # remembered, as cells inside a plain moving object soon stop changing
        self._came = known & np.where(difference >= _FEW, came, self._came | came)
        away = _ramp(foreground, max(_FEW, rain), max(_MANY, rain + _STIR))
        return np.where(known, away * (self._still <= PATIENCE), changing)

    def _kept(self, view: EmbedderInput) -> Map:
        """The previous frame's motion, decayed and warped along the flow."""
        if not self._carried.any():
            return self._carried
        kept = self._carried * _KEEP
        kept[kept < _FAINT] = 0
        if view.flow is None:
            return kept
        x, y = self._column + view.flow.dx, self._row + view.flow.dy
        return np.asarray(cv2.remap(kept, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.float32)


def _camera_motion(view: EmbedderInput) -> tuple[float, float] | None:
    """The median flow, in cells, if so much changed that the camera may have moved; else None."""
    if view.flow is None or np.count_nonzero(view.changed) < _SHAKES * view.changed.size:
        return None
    return _median(view.flow)


def _median(flow: Flow) -> tuple[float, float]:
    """Median dx and dy: the mean of the middle two, as a Grid has an even number of cells."""
    middle = flow.dx.size // 2
    parts = (np.partition(each.ravel(), (middle - 1, middle))[middle - 1 : middle + 1] for each in (flow.dx, flow.dy))
    dx, dy = (part.mean() for part in parts)
    return dx, dy


def _apart(flow: Flow, camera: tuple[float, float]) -> Map:
    """Confidence that each cell moves differently from the camera; 0 where the flow is not reliable."""
    away = np.hypot(flow.dx - camera[0], flow.dy - camera[1])
    return _ramp(np.where(flow.confidence > 0, away, np.float32(0)), _SLOW, _FAST)


def _ramp(values: Map, none: float, full: float) -> Map:
    return np.asarray(np.clip((values - np.float32(none)) / np.float32(full - none), 0, 1), np.float32)
