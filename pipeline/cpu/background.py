"""Background model: share of each cell's samples that differ from the learned static background."""

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.attributes.background import LEARNING_FRAMES, pans, step
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.native.background import BACKGROUND_LEVEL, BackgroundState, update_background


class BackgroundModel:
    """Keeps the maps "frame_difference" and "foreground", which queries for what moves read; see BackgroundState."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._state = BackgroundState.of(geometry)

    def update(self, levels: Levels, written: Mask, index: int, new_scene: bool, noise: int = 0) -> None:
        """Compare the tiles written in frame ``index``. A scene cut, or a camera that pans, resets the background.

        ``noise``: the Update's.
        """
        state = self._state
        state.difference[:] = 0
        planes = [pyramid.level(BACKGROUND_LEVEL) for pyramid in levels.planes]
        update_background(planes, index, self._geometry, written, state, LEARNING_FRAMES, step(noise))
        if new_scene or pans(state.difference):
            state.known[:] = False
            state.foreground[:] = -1
            state.last_change[:] = index
        if new_scene:
            state.difference[:] = 0

    def maps(self) -> dict[str, NDArray[np.float32]]:
        """float32[grid] each, of their own."""
        return {"frame_difference": self._state.difference.copy(), "foreground": self._state.foreground.copy()}
