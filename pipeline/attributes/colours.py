"""Colour names: the eleven basic colour terms of Berlin and Kay (1969), as regions of CIELAB."""

from functools import cache
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.colour import to_rgb
from foveate.pipeline.frames import Colour
from foveate.pipeline.native.attributes import BINS, COLOURS, Tables
from foveate.pipeline.query.example import Example

NAMES = ("black", "white", "grey", "red", "orange", "yellow", "green", "blue", "purple", "pink", "brown")
PIXEL_CHANNELS = COLOURS + 1
"""clip0 .. clip11: the shares of the named colours, and lightness."""

_GREY = 11.0  # chroma below which a colour is white, grey or black
_DIM_GREY = 16.0  # the same for dark colours, whose hue is noisy
_HUES = (("red", 48.0), ("orange", 80.0), ("yellow", 112.0), ("green", 195.0), ("blue", 308.0), ("purple", 345.0))
"""Where the hue range of each name ends, in degrees; beyond the last one it is red again."""
_DOMINANT: Final = 0.2  # share of an example picture from which on a colour counts
_SIDE: Final = 64  # samples along each side that this is measured with


@cache
def tables(colour: Colour) -> Tables:
    """Name and lightness of every bin of (Y, Cb, Cr), at its centre."""
    luma, cb, cr = np.indices(BINS, np.float32)
    planes = (luma * 8 + 4).astype(np.uint8), (cb * 4 + 2).astype(np.uint8), (cr * 4 + 2).astype(np.uint8)
    y, blue, red = (plane.reshape(1, -1) for plane in planes)
    rgb = to_rgb(y, blue, red, colour)
    lab = cv2.cvtColor(rgb.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2Lab).reshape(-1, 3)
    lightness = np.rint(np.clip(lab[:, 0], 0, 100) * 2.55).astype(np.uint8)
    return Tables(named(np.asarray(lab, np.float32)).reshape(BINS), lightness.reshape(BINS))


def named(lab: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Index in NAMES of each colour of float32[n, 3]: L* (0..100), a*, b*."""
    light, chroma = lab[:, 0], np.hypot(lab[:, 1], lab[:, 2])
    hue = np.degrees(np.arctan2(lab[:, 2], lab[:, 1])) % 360
    code = {name: np.uint8(index) for index, name in enumerate(NAMES)}
    ends, hues = [hue < end for _, end in _HUES], [code[name] for name, _ in _HUES]
    names = np.asarray(np.select(ends, hues, code["red"]), np.uint8)
    warm, rosy = (hue >= 30) & (hue < 95), (hue >= 335) | (hue < 20)
    names[warm & ((light < 52) | (chroma < 43)) & ~((hue < 48) & (chroma > 45))] = code["brown"]
    names[(hue >= 95) & (hue < 102) & (light > 52) & (chroma < 32)] = code["brown"]  # beige
    names[(hue >= 48) & (hue < 80) & (light > 46) & (chroma > 65)] = code["orange"]
    names[(names == code["red"]) & (light > 62) & (chroma < 70)] = code["pink"]
    names[rosy & (light > 48) & (light + chroma / 4 > 66)] = code["pink"]
    names[rosy & ((hue < 10) | (hue >= 345)) & (light > 43) & (light + chroma / 4 > 60)] = code["pink"]
    names[(names == code["purple"]) & (light > 72) & (hue > 318)] = code["pink"]
    names[(names == code["red"]) & (chroma < 22)] = code["brown"]
    names[(hue >= 30) & (hue < 115) & (chroma < 22) & (light > 84)] = code["white"]  # under warm light
    names[((hue < 30) | (hue > 350)) & (chroma < 15) & (light > 84)] = code["white"]
    names[(names == code["yellow"]) & (hue > 92) & (light < 68)] = code["green"]  # olive, as dry grass is
    names[(names == code["yellow"]) & (hue > 105) & (light < 82)] = code["green"]
    dull = chroma < np.where(light < 30, _DIM_GREY, _GREY)
    names[dull] = code["grey"]
    names[dull & (light > 86)] = code["white"]
    names[(dull & (light < 26)) | ((light < 9) & (chroma < 36))] = code["black"]
    return names


def dominant_colours(picture: Example) -> list[int]:
    """Indices in NAMES of the colours that fill a fifth of a picture or more; if none does, of the most frequent.

    The picture is averaged to at most 64 x 64 samples. Transparent ones do not count.
    """
    height, width = (min(side, _SIDE) for side in picture.shows.shape)
    small = cv2.resize(picture.filled(), (width, height), interpolation=cv2.INTER_AREA)
    opaque = cv2.resize(picture.shows.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
    counts = opaque >= min(0.5, opaque.max())
    lab = cv2.cvtColor(small.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2Lab)
    shares = np.bincount(named(np.asarray(lab[counts], np.float32)), minlength=len(NAMES)) / np.count_nonzero(counts)
    return [index for index, share in enumerate(shares) if share >= min(_DOMINANT, shares.max())]
