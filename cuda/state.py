"""State of the pixel kernels in device memory, which the Cascade reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.structs import layouts
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.frames import Colour, FrameView
from foveate.pipeline.geometry import TOP_LEVEL, Geometry
from foveate.pipeline.selection import KeyframeReason
from foveate.pipeline.spec.keyframes import Keyframe
from foveate.pipeline.spec.local_channels import GridChannel

_STRUCTS: Final = layouts(Path(__file__).with_name("state.cuh"))

FRAME_INPUT: Final = _STRUCTS["FrameInput"]
FRAME_STATE: Final = _STRUCTS["FrameState"]


KEYFRAMES: Final[tuple[KeyframeReason | None, ...]] = (
    None,
    *(cast(KeyframeReason, kind.name.lower()) for kind in Keyframe if kind),
)
"""By the number in FrameState.keyframe."""

GRID_CHANNELS: Final = tuple(channel.name.lower() for channel in GridChannel)
"""Channels that the scores read, float32[grid]: order of ``PixelState.channels``."""


@dataclass(frozen=True, slots=True, eq=False)
class PlaneLevels:
    """One plane of the picture at every level: the device's copy of pipeline.cpu.levels.PlanePyramid.

    ``levels[0]`` is uint8[geometry.level(base)], the padding filled by repeating the edge; ``levels[k - base]`` is
    float32[geometry.level(k)], in 8-bit units, for k in base + 1 .. 4. Rows lie side by side.
    """

    base: int  # 0, or 1 for halved chroma
    levels: tuple[DeviceArray, ...]

    def level(self, level: int) -> DeviceArray:
        """The samples of ``level``; where it is finer than the base, the base."""
        return self.levels[max(level - self.base, 0)]

    @property
    def pointers(self) -> tuple[DeviceArray, list[DeviceArray | None]]:
        """The base, and levels 1 .. 4, None up to the base: the kernels' structs of a plane."""
        base, *coarse = self.levels
        return base, [*(None for _ in range(TOP_LEVEL - len(coarse))), *coarse]


@dataclass(frozen=True, slots=True, eq=False)
class PixelState:
    """Pixels, levels and channels of a stream of frames of one size. Everything is updated in place, frame by frame.

    On one stream the order of work is enough; nothing here is copied for the Cascade.
    """

    geometry: Geometry
    colour: Colour
    subsampled: bool  # chroma has half the luma's resolution
    frame: DeviceArray  # FRAME_STATE, shape ()
    changed: DeviceArray  # uint8[tiles]: 1 where the frame differed from what the texture held
    dirty: DeviceArray  # int32[tiles, flat]: row * columns + column of the tiles written, frame.dirty_count of them
    written: DeviceArray  # uint8[tiles]: 1 for the tiles of ``dirty``
    planes: tuple[PlaneLevels, PlaneLevels, PlaneLevels]  # Y, Cb, Cr
    errors: DeviceArray  # float32[4, grid]: squared error over the cell when shown at level 1, 2, 3, 4
    channels: DeviceArray  # float32[7, grid], in the order of GRID_CHANNELS

    def channel(self, name: str) -> DeviceArray:
        """float32[grid] of one of GRID_CHANNELS."""
        return self.channels.part(GRID_CHANNELS.index(name))

    @property
    def colours(self) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        """Y, Cb and Cr of each cell, float32[grid], in 8-bit units."""
        luma, cb, cr = (plane.levels[-1] for plane in self.planes)
        return luma, cb, cr


def update_of(
    frame: FrameView,
    geometry: Geometry,
    state: NDArray[np.void],
    changed: NDArray[np.uint8],
    written: NDArray[np.uint8],
) -> Update:
    """The Update of ``frame``, from copies of the device's FRAME_STATE[1], uint8[tiles] and uint8[tiles]."""
    keyframe = KEYFRAMES[int(state["keyframe"][0])]
    tiles = changed.astype(np.bool_), written.astype(np.bool_)
    return Update(frame, geometry, keyframe, *tiles, int(state["noise"][0]))
