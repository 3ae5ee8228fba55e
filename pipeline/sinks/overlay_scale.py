"""Bringing pictures and coarse maps to the size of a panel."""

from __future__ import annotations

import cv2
import numpy as np

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


def resized(picture: Image, width: int, height: int) -> Image:
    """The picture at another size; enlarged without smoothing, so that pixels stay pixels."""
    if picture.shape[:2] == (height, width):
        return picture
    method = cv2.INTER_NEAREST if width >= picture.shape[1] else cv2.INTER_AREA
    result = np.empty((height, width, 3), np.uint8)
    cv2.resize(picture, (width, height), result, interpolation=method)
    return result
