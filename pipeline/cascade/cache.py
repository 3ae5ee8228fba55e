"""Maps of earlier frames, warped along the optical flow."""

import cv2
import numpy as np

from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import Mask
from foveate.pipeline.settings import CacheSettings


class Cache:
    """Named float32[grid] maps, and for each cell its age: frames since they were computed rather than warped.

    Maps of ``linear`` are warped bilinearly; those of ``nearest`` hold labels and are never averaged.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        linear: tuple[str, ...],
        nearest: tuple[str, ...],
        settings: CacheSettings,
    ) -> None:
        self.maps = {name: np.zeros(shape, np.float32) for name in (*linear, *nearest)}
        self._filter = dict.fromkeys(linear, cv2.INTER_LINEAR) | dict.fromkeys(nearest, cv2.INTER_NEAREST)
        self._settings = settings
        self._age = np.full(shape, settings.max_age, np.int32)
        self._row, self._column = np.indices(shape, dtype=np.float32)

    def clear(self) -> None:
        """Reset all maps; no cell is valid until it is computed again."""
        for name, values in self.maps.items():
            self.maps[name] = np.zeros_like(values)
        self._age[:] = self._settings.max_age

    def warp(self, flow: Flow | None) -> Mask:
        """Warp all maps backward; with None they stay as they are. Returns bool[grid]: cells that may be reused."""
        if flow is None:
            return self._age < self._settings.max_age
        x, y = self._column + flow.dx, self._row + flow.dy
        for name, values in self.maps.items():
            self.maps[name] = np.asarray(cv2.remap(values, x, y, self._filter[name], borderMode=cv2.BORDER_REPLICATE))
        rows, columns = self._age.shape
        nearest_y = np.clip(np.rint(y), 0, rows - 1).astype(np.intp)
        nearest_x = np.clip(np.rint(x), 0, columns - 1).astype(np.intp)
        self._age = self._age[nearest_y, nearest_x]
        inside = (x > -0.5) & (y > -0.5) & (x < columns - 0.5) & (y < rows - 0.5)
        return inside & (flow.confidence >= self._settings.confidence) & (self._age < self._settings.max_age)

    def advance_age(self, valid: Mask) -> None:
        """Add one frame to the age of the cells of ``valid``; the others start at 0."""
        self._age = np.where(valid, self._age + 1, np.int32(0))
