"""Frames whose tokens are chosen on the host: the GPU decodes them and works on their pixels.

The CPU engine's Cascade chooses them, so the CUDA engine supports every setting, with the same results.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.frame_input import FrameControls
from foveate.cuda.frames import AnyFrame
from foveate.cuda.patches import PatchesOnDevice
from foveate.cuda.pixels.grid_layers import GridLayers
from foveate.cuda.pixels.pixels import Pixels
from foveate.cuda.state_readback import StateReadback
from foveate.pipeline.cpu.pyramid import State
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.selection import Step
from foveate.pipeline.settings import Settings


class HostSelector:
    """A format_session.Selector. Of the channels on the Grid, only edge_distance is written to the textures."""

    def __init__(self, device: Device, pixels: Pixels, plan: StreamPlan, stream: Stream) -> None:
        """Raises EngineError where there is no memory."""
        self._pixels = pixels
        self._grid_layers = GridLayers(device, pixels.state, pixels.stack, {}, 0)
        self._memory = Memory(device)
        try:
            self._readback = StateReadback(self._memory, pixels.state, plan, stream)
        except BaseException:
            self._memory.free()
            raise

    @property
    def graph_key(self) -> tuple[int, ...] | None:
        """See StateReadback.captures."""
        return () if self._readback.captures else None

    def begin(self, frame: AnyFrame, stream: Stream) -> FrameControls:
        """Feedback matters to the CPU engine's Cascade alone, which takes it."""
        return FrameControls()

    def enqueue(self, frame: AnyFrame, slot: int, stream: Stream) -> None:
        """The frame's pixels, and their copies into ``slot``."""
        self._pixels.enqueue(slot, stream)
        self._pixels.layers.enqueue(stream)
        self._grid_layers.enqueue(stream)
        self._readback.enqueue(frame.index, slot, stream)

    def enqueue_uncaptured(self, slot: int, stream: Stream) -> None:
        """Nothing: no patches are made on the device."""

    def finish(self, frame: AnyFrame, slot: int) -> State:
        """What the Cascade reads of the frame; its levels stay until the slot's next frame."""
        return self._readback.state(frame, slot)

    def free(self) -> None:
        """Free all memory. Nothing enqueued may still run."""
        self._memory.free()


def with_device_patches(steps: Iterable[Step], device: Device, settings: Settings) -> Iterator[Step]:
    """The Steps with device copies of their patches, which stay on the host only where requested."""
    lent = PatchesOnDevice(device, settings.allocation.most(settings.rate))
    try:
        for frame, selection in steps:
            assert selection.patches is not None
            tensor = lent.copy_of(selection.patches)
            kept = selection.patches if settings.patches else None
            yield Step(frame, replace(selection, patches=kept, device_patches=tensor))
    finally:
        lent.close()
