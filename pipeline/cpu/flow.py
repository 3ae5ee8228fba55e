"""Optical flow of the CPU engine: OpenCV's DIS (Kroeger et al., 2016) on a coarse level."""

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import TOP_LEVEL, Map, Mask
from foveate.pipeline.spec.flow import DOUBT

_LEAST_SIDE = 32  # samples; OpenCV's search ends the process on some pictures with a shorter side

Picture = NDArray[np.uint8]


class FlowSearch:
    """Finds where the content of each cell was one frame earlier, in pictures of one size.

    The search runs over the whole picture, which at these levels costs less than preparing it for a part would.
    """

    def __init__(self, level: int) -> None:
        self._side = 1 << (TOP_LEVEL - level)  # samples along a cell
        self._dis = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_ULTRAFAST)
        self._before: Picture | None = None
        self._place: tuple[Map, Map] | None = None

    def observe(self, picture: Picture) -> None:
        """Store the picture for the next search, without searching."""
        self._before = picture

    def search(self, picture: Picture, changed: Mask) -> Flow | None:
        """The Flow from the previous picture to ``picture``; None where nothing changed or there is no previous one.

        ``picture`` is the luma at the flow level, ``changed`` bool[grid]. Unchanged cells have flow 0 and confidence 1.
        """
        if not changed.any():
            return None
        before, self._before = self._before, picture
        return None if before is None else self._flow(before, picture, changed)

    def _flow(self, before: Picture, now: Picture, changed: Mask) -> Flow:
        motion = self._motion(before, now)
        across, down = motion[..., 0].copy(), motion[..., 1].copy()
        column, row = self._own_place(now)
        warped = cv2.remap(before, column + across, row + down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        doubt = grid_means(np.asarray(cv2.absdiff(warped, now), np.uint8).astype(np.float32), self._side)
        confidence = np.maximum(np.float32(1.0) - doubt * np.float32(DOUBT), np.float32(0.0))
        moved = changed * np.float32(1.0 / self._side)
        dx, dy = (grid_means(displacement, self._side) * moved for displacement in (across, down))
        return Flow(dx, dy, np.where(changed, confidence, np.float32(1.0)))

    def _own_place(self, picture: Picture) -> tuple[Map, Map]:
        """Column and row of each sample: two float32[h, w]."""
        if self._place is None:
            place = np.indices(picture.shape, dtype=np.float32)
            self._place = place[1], place[0]
        return self._place

    def _motion(self, before: Picture, now: Picture) -> Map:
        """Displacement in samples from ``now`` to ``before``: float32[h, w, 2]."""
        height, width = now.shape
        down, right = max(_LEAST_SIDE - height, 0), max(_LEAST_SIDE - width, 0)
        if down or right:
            before, now = (
                np.asarray(cv2.copyMakeBorder(picture, 0, down, 0, right, cv2.BORDER_REPLICATE), np.uint8)
                for picture in (before, now)
            )
        start = np.zeros((*now.shape, 2), np.float32)
        return np.asarray(self._dis.calc(now, before, start), np.float32)[:height, :width]


def grid_means(values: Map, side: int) -> Map:
    """Mean of each side x side block: one value per cell."""
    height, width = values.shape
    return np.asarray(cv2.resize(values, (width // side, height // side), interpolation=cv2.INTER_AREA), np.float32)
