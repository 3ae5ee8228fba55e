"""Optical flow over the Grid."""

from typing import NamedTuple

import cv2
import numpy as np

from foveate.pipeline.geometry import Map


class Flow(NamedTuple):
    """Where each cell's content was in the previous frame: its origin is at (column + dx, row + dy). In cells."""

    dx: Map
    dy: Map
    confidence: Map  # in [0, 1]


def warped(plane: Map, x: Map, y: Map) -> Map:
    """``plane``, float32[h, w], read bilinearly at columns ``x`` and rows ``y``, the edge repeated: shape of ``x``."""
    return np.asarray(cv2.remap(plane, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.float32)
