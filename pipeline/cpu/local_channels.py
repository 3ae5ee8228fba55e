"""The parts of the channels with local reach, as functions of samples of the levels. Arrays are float32 images."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.frames import Colour

Map = NDArray[np.float32]

SALIENCY_GAIN = 4.0
"""Centre-surround differences of natural pictures rarely exceed a quarter of the range."""


def unit_luma(samples: Map, colour: Colour) -> Map:
    """Luma in 8-bit units -> Y in [0, 1], by the stream's range."""
    low, span = (0.0, 255.0) if colour.full_range else (16.0, 219.0)
    unit = samples - np.float32(low)
    unit *= np.float32(1.0 / span)
    return np.clip(unit, 0.0, 1.0, out=unit)


def enlarged(samples: Map, factor: int) -> Map:
    """Bilinear, sample centres aligned: [h, w] -> [factor*h, factor*w]."""
    if factor == 1:
        return samples
    height, width = samples.shape
    size = (width * factor, height * factor)
    return np.asarray(cv2.resize(samples, size, interpolation=cv2.INTER_LINEAR))


def squared_gradient(values: Map) -> Map:
    """|grad values|^2 by 3x3 Sobel / 4; the border is repeated."""
    down = np.asarray(cv2.Sobel(values, cv2.CV_32F, 0, 1, scale=0.25, borderType=cv2.BORDER_REPLICATE), np.float32)
    across = np.asarray(cv2.Sobel(values, cv2.CV_32F, 1, 0, scale=0.25, borderType=cv2.BORDER_REPLICATE), np.float32)
    # Not cv2.magnitude: in builds with IPP its last bit depends on where the arrays lie in memory.
    np.multiply(down, down, out=down)
    np.multiply(across, across, out=across)
    return np.add(across, down, out=across)


def strongest(squares: Map, side: int) -> Map:
    """Root of the greatest of each side x side block of ``squares``, clipped to 1: one value per cell."""
    return np.minimum(np.sqrt(grid_maxima(squares, side)), np.float32(1.0))


def opponents(cb: Map, cr: Map) -> tuple[Map, Map]:
    """Red-green (R - G) and blue-yellow (B - (R + G)/2), both halved, from Cb and Cr by BT.601's matrix.

    In 8-bit units and up to a constant, which a difference of levels does not see.
    """
    red_green = cv2.addWeighted(cr, 1.058, cb, 0.172, 0.0)
    blue_yellow = cv2.addWeighted(cb, 0.972, cr, -0.172, 0.0)
    return np.asarray(red_green, np.float32), np.asarray(blue_yellow, np.float32)


def centre_surround(centre: tuple[Map, Map, Map], surround: tuple[Map, Map, Map], colour: Colour) -> Map:
    """Mean over (Y, Cb, Cr)'s luma, red-green and blue-yellow of |centre - surround|, times a gain, clipped to 1.

    Arguments are in 8-bit units, ``surround`` at a coarser level. After Itti, Koch and Niebur (1998), with one pair
    of scales instead of six.
    """
    factor = centre[0].shape[0] // surround[0].shape[0]
    fine, coarse = (centre[0], *opponents(*centre[1:])), (surround[0], *opponents(*surround[1:]))
    luma, red_green, blue_yellow = (
        cv2.absdiff(near, enlarged(far, factor)) for near, far in zip(fine, coarse, strict=True)
    )
    luma_span, chroma_span = (255.0, 255.0) if colour.full_range else (219.0, 224.0)
    total = cv2.add(red_green, blue_yellow)
    cv2.addWeighted(luma, SALIENCY_GAIN / luma_span / 3, total, SALIENCY_GAIN / chroma_span / 3, 0.0, dst=total)
    return np.asarray(np.minimum(total, np.float32(1.0), out=np.asarray(total)), np.float32)


def grid_means(values: Map, side: int) -> Map:
    """Mean of each side x side block: one value per cell."""
    height, width = values.shape
    return np.asarray(cv2.resize(values, (width // side, height // side), interpolation=cv2.INTER_AREA))


def grid_maxima(values: Map, side: int) -> Map:
    """Maximum of each side x side block: one value per cell."""
    while side > 1:
        rows = np.maximum(values[0::2], values[1::2])
        values = np.maximum(rows[:, 0::2], rows[:, 1::2])
        side //= 2
    return values
