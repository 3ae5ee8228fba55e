"""Bringing pictures and coarse maps to the size of a panel."""

import cv2
import numpy as np

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.frames import Frame, FrameView, Plane
from foveate.pipeline.sinks.overlay.layout import Image


def picture_at(frame: FrameView, width: int, height: int) -> Image:
    """The frame's picture at another size: reduced by areas, or enlarged so that pixels stay pixels."""
    if width < frame.width or height < frame.height:  # planes first, which leaves less to convert
        chroma = frame.chroma
        if chroma is not None:
            size = ((width + 1) // 2, (height + 1) // 2) if frame.subsampled else (width, height)
            chroma = _reduced(chroma[0], *size), _reduced(chroma[1], *size)
        return picture_rgb(Frame(frame.index, frame.time, _reduced(frame.luma, width, height), chroma, frame.colour))
    image = np.empty((height, width, 3), np.uint8)
    cv2.resize(picture_rgb(frame), (width, height), image, interpolation=cv2.INTER_NEAREST)
    return image


def _reduced(plane: Plane, width: int, height: int) -> Plane:
    result = np.empty((height, width), np.uint8)
    cv2.resize(plane, (width, height), result, interpolation=cv2.INTER_AREA)
    return result
