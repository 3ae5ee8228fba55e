"""The channels with local reach, each as one function of levels of the planes. Arrays are float32 images."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.frames import Colour

Map = NDArray[np.float32]

SALIENCY_GAIN = np.float32(4.0)
"""Centre-surround differences of natural pictures rarely exceed a quarter of the range."""


def unit_luma(samples: NDArray[np.uint8] | Map, colour: Colour) -> Map:
    """Luma in 8-bit units -> Y in [0, 1], by the stream's range."""
    low, span = (0.0, 255.0) if colour.full_range else (16.0, 219.0)
    unit = samples.astype(np.float32)
    unit -= np.float32(low)
    unit *= np.float32(1.0 / span)
    return np.clip(unit, 0.0, 1.0, out=unit)


def unit_chroma(samples: NDArray[np.uint8] | Map, colour: Colour) -> Map:
    """Cb or Cr in 8-bit units -> [-0.5, 0.5], by the stream's range."""
    unit = samples.astype(np.float32)
    unit -= np.float32(128.0)
    unit *= np.float32(1.0 / (255.0 if colour.full_range else 224.0))
    return unit


def enlarged(samples: Map, factor: int) -> Map:
    """Bilinear, sample centres aligned: [h, w] -> [factor*h, factor*w]."""
    if factor == 1:
        return samples
    height, width = samples.shape
    size = (width * factor, height * factor)
    return np.asarray(cv2.resize(samples, size, interpolation=cv2.INTER_LINEAR))


def gradient(values: Map) -> Map:
    """|grad values| by 3x3 Sobel / 4, clipped to 1; the border is repeated."""
    down = cv2.Sobel(values, cv2.CV_32F, 0, 1, scale=0.25, borderType=cv2.BORDER_REPLICATE)
    across = cv2.Sobel(values, cv2.CV_32F, 1, 0, scale=0.25, borderType=cv2.BORDER_REPLICATE)
    magnitude = np.asarray(cv2.magnitude(across, down))
    return np.minimum(magnitude, np.float32(1.0), out=magnitude)


def edges(luma: Map) -> Map:
    """Detail in dark areas: |grad sqrt(Y)|."""
    return gradient(np.sqrt(luma))


def edges_inverted(luma: Map) -> Map:
    """Detail in bright areas: |grad sqrt(1 - Y)|."""
    return gradient(np.sqrt(np.float32(1.0) - luma))


def opponents(cb: Map, cr: Map) -> tuple[Map, Map]:
    """Red-green (R - G) and blue-yellow (B - (R + G)/2), both halved, from unit chroma by BT.601's matrix."""
    red_green = np.float32(1.058) * cr + np.float32(0.172) * cb
    blue_yellow = np.float32(0.972) * cb - np.float32(0.172) * cr
    return red_green, blue_yellow


def centre_surround(centre: tuple[Map, ...], surround: tuple[Map, ...]) -> Map:
    """Mean over the feature pairs of |centre - surround|, times a fixed gain, clipped to 1.

    After Itti, Koch and Niebur (1998), with one scale pair instead of six.
    """
    factor = centre[0].shape[0] // surround[0].shape[0]
    total = np.zeros_like(centre[0])
    for fine, coarse in zip(centre, surround, strict=True):
        total += np.asarray(cv2.absdiff(fine, enlarged(coarse, factor)))
    total *= SALIENCY_GAIN / np.float32(len(centre))
    return np.minimum(total, np.float32(1.0), out=total)


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
