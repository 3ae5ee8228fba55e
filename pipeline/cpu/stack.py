"""The channel stack: local channels at the analysis level, reduced to the Grid, updated where tiles were written."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.channels import CHANNELS
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import TOP_LEVEL, Geometry, Mask
from foveate.pipeline.native.channels import Gains, Sources, local_channels
from foveate.pipeline.native.levels import Motion
from foveate.pipeline.spec.local_channels import LOWPASS_LEVEL, SALIENCY_GAIN, SALIENCY_LEVEL

LOCAL = tuple(channel.name for channel in CHANNELS if channel.group == "local" and channel.name != "text")


def gains_of(colour: Colour) -> Gains:
    """Saliency is the mean of three contrasts (luma, red-green, blue-yellow), after Itti, Koch and Niebur (1998)."""
    black, span, chroma_span = (0.0, 255.0, 255.0) if colour.full_range else (16.0, 219.0, 224.0)
    return Gains(black, span, SALIENCY_GAIN / span / 3, SALIENCY_GAIN / chroma_span / 3)


class ChannelStack:
    """The local channels, computed at the analysis level and kept as ``grid[name]``, float32[grid].

    Their reduction to the Grid is all that the Cascade reads; so nothing else of them is stored.
    """

    def __init__(self, geometry: Geometry, analysis_level: int, colour: Colour) -> None:
        self._level = analysis_level
        self._geometry = geometry
        self._gains = gains_of(colour)
        self.moving = False  # whether the motion channel holds anything
        self.grid: dict[str, NDArray[np.float32]] = {name: np.zeros(geometry.grid, np.float32) for name in LOCAL}

    def update(self, levels: Levels, written: Mask) -> None:
        """Recompute the local channels over ``written`` tiles and as far around them as a change reaches."""

        def planes(level: int) -> list[NDArray[np.float32]]:
            return [pyramid.level(level) for pyramid in levels.planes]

        luma = levels.luma.level(self._level)
        sources = Sources(luma, levels.luma.level(LOWPASS_LEVEL), planes(SALIENCY_LEVEL), planes(TOP_LEVEL))
        local_channels(sources, self._level, self._gains, self._geometry, written, self.grid)

    def begin_motion(self, levels: Levels, update: Update, known: bool) -> Motion | None:
        """Where to store |Y - previous Y| while ``levels``, as they are now, are overwritten.

        Motion is zero outside the changed tiles, and everywhere if the previous picture is not ``known``.
        """
        motion = self.grid["motion"]
        if self.moving:
            motion[:] = 0
        self.moving = known
        if not known:
            return None
        return Motion(levels.luma.level(self._level), update.changed, motion, 1.0 / self._gains.span, self._level)
