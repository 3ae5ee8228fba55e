"""How noisy a stream's pictures are, and the change threshold that follows."""

from __future__ import annotations

from typing import Final

import numpy as np

from foveate.pipeline.frames import Plane
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.native.change import noise_level
from foveate.pipeline.settings import ChangeSettings

MOST: Final = 8.0
"""Grey values up to which noise raises the threshold."""
PER_GREY: Final = 8  # levels of noise to a grey value


class Noise:
    """Measured between each frame and the one before; it counts from the next frame on."""

    def __init__(self, geometry: Geometry, settings: ChangeSettings) -> None:
        self._settings = settings
        self._before = np.zeros((*geometry.tiles, 64), np.uint8)
        self._level = 0

    @property
    def threshold(self) -> float:
        """Mean absolute difference of a block above which its tile has changed."""
        noise = self._settings.noise * self._level / PER_GREY
        return max(self._settings.threshold, min(noise, MOST))

    def note(self, luma: Plane, forgets: bool) -> None:
        """Look at a frame. What begins a new scene says nothing of noise."""
        if self._settings.noise:
            level = noise_level(luma, self._before)
            self._level = 0 if forgets else level
