"""Bringing pictures and coarse maps to the size of a panel."""

from __future__ import annotations

import cv2
import numpy as np

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.frames import Frame, FrameView, Plane
from foveate.pipeline.selection import Selection
from foveate.pipeline.sinks.overlay_layout import Image, Map


def enlarged(coarse: Map, step: int, selection: Selection, shape: tuple[int, ...], method: int) -> Map:
    """A map with one value per ``step`` x ``step`` level-0 pixels, at the scale of an image of ``shape``.

    What lies beyond the picture, in its padding, is cut off. ``method`` is OpenCV's interpolation.
    """
    height, width = shape[:2]
    across, down = selection.width / width / step, selection.height / height / step
    back = np.array([[across, 0, across / 2 - 0.5], [0, down, down / 2 - 0.5]])  # pixel centre to pixel centre
    image = np.empty((height, width), np.uint8)
    flags = method | cv2.WARP_INVERSE_MAP
    cv2.warpAffine(coarse, back, (width, height), image, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return image


def picture_at(frame: FrameView, width: int, height: int) -> Image:
    """The frame's picture at another size: reduced by areas, or enlarged so that pixels stay pixels."""
    if width < frame.width or height < frame.height:  # planes first, which leaves less to convert
        chroma = frame.chroma
        if chroma is not None:
            size = ((width + 1) // 2, (height + 1) // 2) if frame.subsampled else (width, height)
            chroma = _reduced(chroma[0], *size), _reduced(chroma[1], *size)
        return picture_rgb(Frame(frame.index, frame.seconds, _reduced(frame.luma, width, height), chroma, frame.colour))
    image = np.empty((height, width, 3), np.uint8)
    cv2.resize(picture_rgb(frame), (width, height), image, interpolation=cv2.INTER_NEAREST)
    return image


def _reduced(plane: Plane, width: int, height: int) -> Plane:
    result = np.empty((height, width), np.uint8)
    cv2.resize(plane, (width, height), result, interpolation=cv2.INTER_AREA)
    return result
