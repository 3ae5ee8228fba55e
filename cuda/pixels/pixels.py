"""Everything that happens to pixels: owns what the texture holds, and enqueues one frame's work on it."""

from __future__ import annotations

import numpy as np

from foveate.cuda.device import Device, Stream
from foveate.cuda.memory import DeviceArray, Memory
from foveate.cuda.pixels.change import SCRATCH, Change
from foveate.cuda.pixels.channels import LocalChannels
from foveate.cuda.pixels.edge_distance import EdgeDistance
from foveate.cuda.pixels.write import Write
from foveate.cuda.state import FRAME_INPUT, FRAME_STATE, GRID_CHANNELS, PixelState, PlaneLevels
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import TOP_LEVEL, Geometry
from foveate.pipeline.settings import Settings


class Pixels:
    """The state of a stream of frames of one size and colour. ``frame`` takes the FRAME_INPUT of the next frame."""

    def __init__(
        self,
        device: Device,
        geometry: Geometry,
        colour: Colour,
        subsampled: bool,
        settings: Settings,
        stream: Stream,
    ) -> None:
        """Allocate on ``stream``. Raises EngineError where the card is full."""
        self._memory = Memory(device)
        try:
            self.frame = self._memory.array("frame input", (), FRAME_INPUT, stream)
            self.state = _allocate(self._memory, geometry, colour, subsampled, stream)
            scratch = self._memory.array("change scratch", (SCRATCH,), np.int32, stream)
            level = settings.analysis_level
            self._steps = (
                Change(device, self.state, self.frame, scratch, settings.change),
                Write(device, self.state, self.frame, level),
                LocalChannels(device, self.state, level),
                EdgeDistance(device, self.state),
            )
        except BaseException:
            self._memory.free()
            raise

    def enqueue(self, stream: Stream) -> None:
        """Compare the frame that ``frame`` tells of, write what changed, and rebuild what depends on it."""
        for step in self._steps:
            step.enqueue(stream)

    def report(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes in bytes of what is allocated."""
        return self._memory.report()

    def free(self) -> None:
        """Release. No work on it may still run."""
        self._memory.free()


def _allocate(memory: Memory, geometry: Geometry, colour: Colour, subsampled: bool, stream: Stream) -> PixelState:
    tiles = geometry.tiles[0] * geometry.tiles[1]
    chroma = int(subsampled)
    luma, cb, cr = (
        _plane(memory, geometry, name, base, stream) for name, base in (("Y", 0), ("Cb", chroma), ("Cr", chroma))
    )
    return PixelState(
        geometry=geometry,
        colour=colour,
        subsampled=subsampled,
        frame=memory.array("frame state", (), FRAME_STATE, stream),
        changed=memory.array("changed tiles", geometry.tiles, np.uint8, stream),
        dirty=memory.array("dirty tiles", (tiles,), np.int32, stream),
        written=memory.array("written tiles", geometry.tiles, np.uint8, stream),
        planes=(luma, cb, cr),
        errors=memory.array("errors", (TOP_LEVEL, *geometry.grid), np.float32, stream),
        channels=memory.array("channels", (len(GRID_CHANNELS), *geometry.grid), np.float32, stream),
    )


def _plane(memory: Memory, geometry: Geometry, name: str, base: int, stream: Stream) -> PlaneLevels:
    levels: list[DeviceArray] = []
    for level in range(base, TOP_LEVEL + 1):
        kind = np.uint8 if level == base else np.float32
        levels.append(memory.array(f"{name}, level {level}", geometry.level(level), kind, stream))
    return PlaneLevels(base, tuple(levels))
