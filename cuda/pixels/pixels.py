"""The Pyramid stage on the device: pixels, levels, channels and textures."""

from contextlib import ExitStack

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory, out_of_memory
from foveate.cuda.driver.textures import MOST_LEVELS, TextureArray, texture_bytes
from foveate.cuda.frame_input import FrameInput
from foveate.cuda.pixels.change import SCRATCH, Change, cut_arrays
from foveate.cuda.pixels.channels import LocalChannels, channel_parameters
from foveate.cuda.pixels.edge_distance import EdgeDistance
from foveate.cuda.pixels.layers import Layers
from foveate.cuda.pixels.layout import LAYERS, stack_levels
from foveate.cuda.pixels.leaf_errors import LeafErrors
from foveate.cuda.pixels.levels import Write
from foveate.cuda.state import FRAME_STATE, GRID_CHANNELS, PixelState, PlaneLevels
from foveate.pipeline.errors import EngineError
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import TOP_LEVEL, Geometry
from foveate.pipeline.settings import Settings


class Pixels:
    """The state of a stream of frames of one size and colour. ``input`` takes the record of the next frame."""

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
        level = settings.analysis_level
        _check_room(device, geometry, level)
        with ExitStack() as undo:
            self._memory = memory = Memory(device)
            undo.callback(memory.free)
            self.rgb = TextureArray(device, "the RGB pyramid", geometry.level(0), 1, MOST_LEVELS)
            undo.callback(self.rgb.free)
            self.stack = TextureArray(device, "the channel stack", geometry.level(level), LAYERS, stack_levels(level))
            undo.callback(self.stack.free)
            self.input = FrameInput(memory, stream)
            self.state = allocate_state(memory, geometry, colour, subsampled, stream)
            before = memory.array("blocks of the frame before", (*geometry.tiles, 64), np.uint8, stream)
            scratch = memory.array("change scratch", (SCRATCH,), np.int32, stream)
            moved = memory.array("moved", geometry.level(level), np.float32, stream)
            shown = memory.array("tiles that show motion", geometry.tiles, np.uint8, stream)
            touched = memory.array("touched tiles", (shown.nbytes + 1,), np.int32, stream)
            self.cuts = cut_arrays(memory, geometry, stream)
            parameters = channel_parameters(device, self.state, level, (self.rgb, self.stack), moved, shown, touched)
            self.steps = (
                Change(device, self.state, self.input.on_device, before, scratch, touched, self.cuts, settings.change),
                Write(device, self.state, self.input.on_device, level, moved),
                LeafErrors(device, self.state),
                LocalChannels(device, self.state, parameters),
                EdgeDistance(device, self.state),
            )
            self.layers = Layers(device, self.state, parameters)
            self._releasing = undo.pop_all()

    def enqueue(self, slot: int, stream: Stream) -> None:
        """Compare the frame in ``slot``, write what changed, and rebuild what the Cascade reads.

        The textures follow with ``layers.enqueue``, after this on the same stream, or beside the Cascade on another.
        """
        self.input.upload(slot, stream)
        for step in self.steps:
            step.enqueue(stream)

    def report(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes in bytes of what is allocated."""
        textures = ((texture.name, texture.nbytes) for texture in (self.rgb, self.stack))
        return (*self._memory.report(), *textures)

    def free(self) -> None:
        """Release. No work on it may still run."""
        self._releasing.close()


def pixel_bytes(geometry: Geometry, analysis_level: int) -> int:
    """Approximate device memory of a Pixels, in bytes."""
    rows, columns = geometry.level(0)
    planes = 3 * rows * columns * 3  # each with levels in float32
    stack = texture_bytes(geometry.level(analysis_level), LAYERS, stack_levels(analysis_level))
    return planes + stack + texture_bytes((rows, columns), 1, MOST_LEVELS)


def _check_room(device: Device, geometry: Geometry, analysis_level: int) -> None:
    """Raise EngineError before anything is allocated, if it would not fit."""
    wanted = pixel_bytes(geometry, analysis_level)
    if wanted > device.memory()[0]:
        name = f"a picture of {geometry.width}x{geometry.height} with channels at level {analysis_level}"
        raise EngineError(out_of_memory(device, name, wanted))


def allocate_state(memory: Memory, geometry: Geometry, colour: Colour, subsampled: bool, stream: Stream) -> PixelState:
    """All arrays, zeroed. Raises EngineError where the card is full."""
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
