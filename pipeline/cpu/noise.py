"""The noise level of a stream, and the change threshold that follows from it."""

import math
from typing import Final

import numpy as np

from foveate.pipeline.frames import Plane
from foveate.pipeline.geometry import CELL, Geometry
from foveate.pipeline.native.change import noise_level
from foveate.pipeline.settings import ChangeSettings
from foveate.pipeline.spec.change import NOISE_PER_GREY

MOST: Final = 8.0
"""Most grey values that noise may raise the threshold to."""
PER_SQUARE: Final = math.pi / 2 * CELL**2
"""Squared error of a cell whose pixels differ by Gaussian noise, with a mean absolute difference of 1."""


def noise_tolerance(settings: ChangeSettings, level: int) -> float:
    """Mean absolute difference, in grey values, up to which two blocks differ by noise of a ``level`` alone."""
    return min(settings.noise * level / NOISE_PER_GREY, MOST)


def noise_error(settings: ChangeSettings, level: int) -> np.float32:
    """Squared error of a cell, in 8-bit units, between two pictures that differ by noise of a ``level``."""
    grey = noise_tolerance(settings, level)
    return np.float32(PER_SQUARE * grey * grey)


class Noise:
    """The noise between each frame and the previous one; it applies from the next frame on."""

    def __init__(self, geometry: Geometry, settings: ChangeSettings) -> None:
        self._settings = settings
        self._before = np.zeros((*geometry.tiles, 64), np.uint8)
        self.level = 0  # in units of 1 / NOISE_PER_GREY

    @property
    def threshold(self) -> float:
        """Mean absolute difference of a block above which its tile has changed."""
        return max(self._settings.threshold, noise_tolerance(self._settings, self.level))

    def measure(self, luma: Plane, new_scene: bool) -> None:
        """Measure the noise of a frame. The first frame of a scene has nothing to be compared with."""
        level = noise_level(luma, self._before)
        self.level = 0 if new_scene else level
