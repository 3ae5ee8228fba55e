"""The parts of the channels with local reach, as functions of samples of the levels.

Arrays are float32 images. Results live in ``scratch`` under the name given, until that name is used again.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cpu.scratch import Scratch
from foveate.pipeline.frames import Colour

Map = NDArray[np.float32]

SALIENCY_GAIN = 4.0
"""Centre-surround differences of natural pictures rarely exceed a quarter of the range."""


def luma_range(colour: Colour) -> tuple[float, float]:
    """Black, and white less black, in 8-bit units."""
    return (0.0, 255.0) if colour.full_range else (16.0, 219.0)


def above_black(samples: Map, colour: Colour, into: Map) -> Map:
    """Luma less black, clipped to the stream's range: Y in [0, 1] times ``luma_range``'s span."""
    black, span = luma_range(colour)
    np.subtract(samples, np.float32(black), out=into)
    return np.clip(into, np.float32(0.0), np.float32(span), out=into)


def enlarged(samples: Map, factor: int, name: str, scratch: Scratch) -> Map:
    """Bilinear, sample centres aligned: [h, w] -> [factor*h, factor*w]. With factor 1 the samples themselves."""
    if factor == 1:
        return samples
    height, width = samples.shape
    large = scratch.array(name, (height * factor, width * factor), np.float32)
    cv2.resize(samples, (width * factor, height * factor), dst=large, interpolation=cv2.INTER_LINEAR)
    return large


def difference(first: Map, second: Map, name: str, scratch: Scratch) -> Map:
    """|first - second|."""
    result = scratch.array(name, first.shape, np.float32)
    cv2.absdiff(first, second, dst=result)
    return result


def squared_gradients(pictures: Map, into: Map, scratch: Scratch) -> Map:
    """|grad|^2 of each of several pictures [n, h, w], by 3x3 Sobel / 4, border repeated, ``into`` [n, h, w]."""
    down = scratch.array("down", pictures.shape, np.float32)
    for picture, vertical, horizontal in zip(pictures, down, into, strict=True):
        cv2.Sobel(picture, cv2.CV_32F, 0, 1, dst=vertical, scale=0.25, borderType=cv2.BORDER_REPLICATE)
        cv2.Sobel(picture, cv2.CV_32F, 1, 0, dst=horizontal, scale=0.25, borderType=cv2.BORDER_REPLICATE)
    # Not cv2.magnitude: in builds with IPP its last bit depends on where the arrays lie in memory.
    np.multiply(down, down, out=down)
    np.multiply(into, into, out=into)
    return np.add(into, down, out=into)


def opponents(cb: Map, cr: Map, name: str, scratch: Scratch) -> tuple[Map, Map]:
    """Red-green (R - G) and blue-yellow (B - (R + G)/2), both halved, from Cb and Cr by BT.601's matrix.

    In 8-bit units and up to a constant, which a difference of levels does not see.
    """
    red_green = scratch.array(f"{name} red-green", cb.shape, np.float32)
    blue_yellow = scratch.array(f"{name} blue-yellow", cb.shape, np.float32)
    cv2.addWeighted(cr, 1.058, cb, 0.172, 0.0, dst=red_green)
    cv2.addWeighted(cb, 0.972, cr, -0.172, 0.0, dst=blue_yellow)
    return red_green, blue_yellow


def centre_surround(
    centre: tuple[Map, Map, Map], surround: tuple[Map, Map, Map], colour: Colour, scratch: Scratch
) -> Map:
    """Mean over luma, red-green and blue-yellow of |centre - surround|, times a gain, clipped to 1.

    Arguments are Y, Cb and Cr in 8-bit units, ``surround`` at a coarser level. After Itti, Koch and Niebur (1998), with
    one pair of scales instead of six.
    """
    factor = centre[0].shape[0] // surround[0].shape[0]
    fine = (centre[0], *opponents(*centre[1:], "centre", scratch))
    coarse = (surround[0], *opponents(*surround[1:], "surround", scratch))
    luma, red_green, blue_yellow = (
        difference(near, enlarged(far, factor, "surround", scratch), f"contrast {index}", scratch)
        for index, (near, far) in enumerate(zip(fine, coarse, strict=True))
    )
    luma_span, chroma_span = luma_range(colour)[1], 255.0 if colour.full_range else 224.0
    np.add(red_green, blue_yellow, out=red_green)
    cv2.addWeighted(luma, SALIENCY_GAIN / luma_span / 3, red_green, SALIENCY_GAIN / chroma_span / 3, 0.0, dst=red_green)
    return np.minimum(red_green, np.float32(1.0), out=red_green)


def grid_means(values: Map, side: int) -> Map:
    """Mean of each side x side block: one value per cell, an array of its own."""
    height, width = values.shape
    return np.asarray(cv2.resize(values, (width // side, height // side), interpolation=cv2.INTER_AREA), np.float32)


def grid_maxima(values: Map, side: int, scratch: Scratch) -> Map:
    """Maximum of each side x side block: one value per cell."""
    while side > 1:
        height, width = values.shape
        rows = scratch.array(f"rows {side}", (height // 2, width), np.float32)
        np.maximum(values[0::2], values[1::2], out=rows)
        side //= 2
        values = np.maximum(
            rows[:, 0::2], rows[:, 1::2], out=scratch.array(f"maxima {side}", (height // 2, width // 2), np.float32)
        )
    return values
