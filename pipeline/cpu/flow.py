"""Optical flow of the CPU engine: OpenCV's DIS (Kroeger et al., 2016) on a coarse level, where something changed."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.cache import Flow, Map
from foveate.pipeline.cpu.local_channels import grid_means
from foveate.pipeline.geometry import TOP_LEVEL, Mask, Rect, around

_MARGIN = 4  # cells around the change that the search may look at
_LEAST_SIDE = 32  # samples; below, the search has no room for its own pyramid
_DOUBT = np.float32(1.0 / 8.0)
"""Confidence lost per grey value by which the warped picture differs from the new one. Half of it is lost at 4, about
the change threshold; of pure noise, three cells in four are then recomputed, of real clips one in twenty."""

Picture = NDArray[np.uint8]


class FlowSearch:
    """Finds, for the cells that changed, where their content was one frame earlier."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._dis = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)
        self._before: Picture | None = None

    def observe(self, picture: Picture) -> None:
        """Only remember the picture, for the next search."""
        self._before = picture

    def search(self, picture: Picture, changed: Mask) -> Flow | None:
        """The Flow from the previous picture to ``picture``; None where nothing changed or there is no previous one.

        ``picture`` is the luma at the flow level, ``changed`` bool[grid]. Unchanged cells rest, with confidence 1.
        """
        if not changed.any():
            return None
        before, self._before = self._before, picture
        return None if before is None else self._flow(before, picture, changed)

    def _flow(self, before: Picture, now: Picture, changed: Mask) -> Flow:
        shape = changed.shape
        flow = Flow(np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.ones(shape, np.float32))
        area = _room_around(changed)
        side = 1 << (TOP_LEVEL - self._level)
        pixels = area.scaled(side)
        motion, warped = self._motion(before, now, pixels)
        doubt = grid_means(np.asarray(cv2.absdiff(warped, now[pixels.slices])).astype(np.float32), side) * _DOUBT
        there = changed[area.slices]
        for target, values in zip(flow, (motion[..., 0], motion[..., 1]), strict=False):
            target[area.slices] = grid_means(np.ascontiguousarray(values), side) * (there / np.float32(side))
        flow.confidence[area.slices] = np.where(there, np.maximum(np.float32(1.0) - doubt, np.float32(0.0)), 1)
        return flow

    def _motion(self, before: Picture, now: Picture, pixels: Rect) -> tuple[Map, Picture]:
        """Displacement [h, w, 2] in samples from ``now`` to ``before`` over ``pixels``, and ``before`` so warped."""
        after = np.ascontiguousarray(now[pixels.slices])
        height, width = after.shape
        if min(height, width) < _LEAST_SIDE:
            return np.zeros((height, width, 2), np.float32), before[pixels.slices]
        earlier = np.ascontiguousarray(before[pixels.slices])
        motion = np.asarray(self._dis.calc(after, earlier, np.zeros((height, width, 2), np.float32)), np.float32)
        place = motion.copy()
        place[..., 0] += np.arange(width, dtype=np.float32)
        place[..., 1] += np.arange(height, dtype=np.float32)[:, None]
        warped = cv2.remap(earlier, place[..., 0], place[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return motion, np.asarray(warped, np.uint8)


def _room_around(changed: Mask) -> Rect:
    """The changed cells with a margin, as one rectangle with room for the search where the picture has it."""
    tight = around(changed)
    short = _LEAST_SIDE - min(tight.bottom - tight.top, tight.right - tight.left)
    return tight.grown(max(_MARGIN, (short + 1) // 2), *changed.shape)
