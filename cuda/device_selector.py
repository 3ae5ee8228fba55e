"""Frames whose tokens are chosen on the device: all work of one frame, in the order in which a graph captures it."""

from typing import Any

from foveate.cuda.cascade.cascade import Cascade
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.frame_input import FrameControls
from foveate.cuda.frames import AnyFrame
from foveate.cuda.pixels.grid_layers import GridLayers
from foveate.cuda.pixels.pixels import Pixels
from foveate.pipeline.selection import Step


class DeviceSelector:
    """A format_session.Selector: pixels, then the Cascade.

    Beside the channels runs what only needs the levels; beside the Cascade, the textures, on which nothing that is
    chosen depends. With queries the host may look into a frame, so nothing can be captured.
    """

    def __init__(self, device: Device, pixels: Pixels, cascade: Cascade) -> None:
        """Takes over ``cascade``, which ``free`` frees. Raises EngineError where the card is full."""
        self._pixels, self._cascade = pixels, cascade
        self._textures, self._early, self._errors = (device.stream() for _ in range(3))
        self._reached = device.event()
        self._grid_layers = GridLayers(device, pixels.state, pixels.stack, cascade.channels(), cascade.turn)

    @property
    def steps(self) -> tuple[Any, ...]:
        """Everything but the copies, as objects with ``enqueue(stream)``, in an order in which they may run."""
        pixels, cascade = self._pixels, self._cascade
        return (*pixels.steps, pixels.layers, *cascade.early, *cascade.steps, self._grid_layers)

    @property
    def graph_key(self) -> tuple[int, ...] | None:
        """See Cascade.graph_key."""
        return self._cascade.graph_key

    def begin(self, frame: AnyFrame, stream: Stream) -> FrameControls:
        """See Cascade.begin."""
        return self._cascade.begin(frame.index, stream)

    def enqueue(self, frame: AnyFrame | None, slot: int, stream: Stream) -> None:
        """From the slot's input record to the copies into ``slot``. Only queries need the ``frame`` itself."""
        steps: tuple[Any, ...] = self._pixels.steps
        change, write, errors, *channels = steps
        self._pixels.input.upload(slot, stream)
        change.enqueue(stream)
        write.enqueue(stream)
        self._follow(self._early, stream)
        self._cascade.enqueue_early(self._early)
        self._follow(self._errors, stream)
        errors.enqueue(self._errors)
        for step in channels:
            step.enqueue(stream)
        self._follow(self._textures, stream)
        self._pixels.layers.enqueue(self._textures)
        self._follow(stream, self._early)
        self._follow(stream, self._errors)
        self._cascade.enqueue(frame, slot, stream)
        self._follow(self._textures, stream)
        self._grid_layers.enqueue(self._textures)
        self._cascade.fetch(slot, stream)
        self._follow(stream, self._textures)

    def _follow(self, stream: Stream, before: Stream) -> None:
        """What comes next on ``stream`` waits for what is on ``before`` now."""
        self._reached.record(before)
        stream.wait_for_event(self._reached)

    def enqueue_uncaptured(self, slot: int, stream: Stream) -> None:
        """See Cascade.export_patches."""
        self._cascade.export_patches(slot, stream)

    def finish(self, frame: AnyFrame, slot: int) -> Step:
        """The frame's Selection."""
        return Step(frame, self._cascade.selection(frame, slot))

    def free(self) -> None:
        """Free all memory. Nothing enqueued may still run."""
        self._cascade.free()
