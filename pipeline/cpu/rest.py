"""What has come to where something else rested: pixels' part of what queries call moving."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.attributes.rest import PATIENCE, STEP, pans
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.native.rest import REST_LEVEL, Memory, compare_rest


class RestStack:
    """Keeps "stirs" and "moved" over the Grid; see native.rest.Memory."""

    def __init__(self, geometry: Geometry) -> None:
        planes = np.zeros((2, 3, *geometry.level(REST_LEVEL)), np.uint8)
        maps = np.zeros((2, *geometry.grid), np.float32)
        known, stirred = np.zeros(geometry.grid, np.bool_), np.zeros(geometry.grid, np.int32)
        self._geometry = geometry
        self._memory = Memory(planes[0], planes[1], known, stirred, maps[0], maps[1])

    def update(self, levels: Levels, written: Mask, index: int, forgets: bool) -> None:
        """Compare the tiles written in frame ``index``. A new scene, or view of it, begins without any rest."""
        memory = self._memory
        memory.stirs[:] = 0
        planes = [pyramid.level(REST_LEVEL) for pyramid in levels.planes]
        compare_rest(planes, index, self._geometry, written, memory, PATIENCE, STEP)
        if forgets or pans(memory.stirs):
            memory.known[:] = False
            memory.moved[:] = -1
            memory.stirred[:] = index
        if forgets:
            memory.stirs[:] = 0

    def maps(self) -> dict[str, NDArray[np.float32]]:
        """float32[grid] each, of their own."""
        return {"stirs": self._memory.stirs.copy(), "moved": self._memory.moved.copy()}
