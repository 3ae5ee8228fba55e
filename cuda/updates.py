"""What the device wrote of a frame, as the CPU engine says it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.state import KEYFRAMES
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry


def update_of(
    frame: FrameView,
    geometry: Geometry,
    state: NDArray[np.void],
    changed: NDArray[np.uint8],
    written: NDArray[np.uint8],
) -> Update:
    """What the device wrote of ``frame``: FRAME_STATE[1], uint8[tiles] and uint8[tiles], as they were copied."""
    keyframe = KEYFRAMES[int(state["keyframe"][0])]
    tiles = changed.astype(np.bool_), written.astype(np.bool_)
    return Update(frame, geometry, keyframe, *tiles, int(state["noise"][0]))
