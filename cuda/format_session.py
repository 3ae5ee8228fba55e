"""Frames of one format in flight: one being processed on the device, one being unpacked on the host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Protocol

from foveate.cuda.driver.calls import Event
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.graph import Graph, GraphCapture
from foveate.cuda.driver.memory import Memory
from foveate.cuda.frame_input import SLOTS, FrameControls, InputPlanes
from foveate.cuda.frames import AnyFrame, DeviceFrame
from foveate.cuda.pixels.pixels import Pixels
from foveate.cuda.pixels.staging import Staging
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.pyramid import State
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.selection import Step
from foveate.pipeline.settings import Settings
from foveate.pipeline.spec.keyframes import Keyframe

_FIRST_WITH_GRAPH: Final = 1  # frame 0 is enqueued kernel by kernel, which also loads them

Kind = tuple[int, int, bool, Colour, Any]


class Selector(Protocol):
    """Chooses the tokens of frames of one size: on the device, or on the host from what the device has computed."""

    @property
    def graph_key(self) -> tuple[int, ...] | None:
        """A graph captured with another key is out of date; None: what ``enqueue`` does cannot be captured."""

    def begin(self, frame: AnyFrame, stream: Stream) -> FrameControls:
        """Before the frame's work: take the feedback, and return what the kernels must know of it."""

    def enqueue(self, frame: AnyFrame, slot: int, stream: Stream) -> None:
        """All of the frame's work, from the slot's input record to the copies into ``slot``."""

    def enqueue_uncaptured(self, slot: int, stream: Stream) -> None:
        """Further work of the frame, which cannot be captured."""

    def finish(self, frame: AnyFrame, slot: int) -> Step | State:
        """What has arrived in ``slot``: the tokens, or what the CPU engine's Cascade chooses them from."""

    def free(self) -> None:
        """Free all memory. Nothing enqueued may still run."""


@dataclass(frozen=True, slots=True, eq=False)
class FrameInFlight:
    """A frame whose pixels are on the device, or on their way there."""

    session: FormatSession
    frame: AnyFrame
    slot: int
    planes: InputPlanes


class _Slot:
    """The graph of one slot, and the event behind its last frame."""

    def __init__(self) -> None:
        self.done = Event()
        self._graph: Graph | None = None
        self._capture = GraphCapture()
        self._key: tuple[int, ...] | None = None  # the Selector's, when the graph was captured

    def run(self, enqueue: Callable[[Stream], None], key: tuple[int, ...] | None, stream: Stream) -> None:
        """Replay the graph of what ``enqueue`` does, captured now where there is none with this ``key``."""
        if self._key != key:
            self._forget_graph()
            self._key, self._capture = key, GraphCapture()
        if self._graph is None and key is not None:
            self._graph = self._capture.captured(stream, enqueue)
        if self._graph is None:
            enqueue(stream)
        else:
            self._graph.launch(stream)

    def _forget_graph(self) -> None:
        if self._graph is not None:
            self._graph.free()
            self._graph = None

    def free(self) -> None:
        """Release the graph and the event. The last launch must have ended."""
        self._forget_graph()
        self.done.free()


class FormatSession:
    """All device memory and graphs for frames of one format: size, colour and sampling."""

    def __init__(
        self,
        device: Device,
        frame: AnyFrame,
        keyframe: Keyframe,
        settings: Settings,
        feedback: Feedback,
        stream: Stream,
        selector: Callable[[Device, Pixels, Stream], Selector],
    ) -> None:
        """For frames of the format of ``frame``, the first of which is a ``keyframe``. Raises EngineError."""
        self.kind = kind_of(frame)
        self._device, self._stream, self._feedback = device, stream, feedback
        self._keyframe = keyframe
        self._count = 0
        geometry = Geometry(frame.width, frame.height)
        with ExitStack() as undo:
            memory = Memory(device)
            undo.callback(memory.free)
            self._pixels = Pixels(device, geometry, frame.colour, frame.subsampled, settings, stream)
            undo.callback(self._pixels.free)
            self._selector = selector(device, self._pixels, stream)
            undo.callback(self._selector.free)
            self._staging = None if isinstance(frame, DeviceFrame) else Staging(device, memory, frame, stream)
            self._slots = [_Slot() for _ in range(SLOTS)]
            for slot in self._slots:
                undo.callback(slot.free)
            undo.callback(stream.synchronize)
            self._releasing = undo.pop_all()

    def upload(self, frame: AnyFrame) -> FrameInFlight:
        """Enqueue the copy of a host frame's planes, or let the stream wait for a device frame's."""
        slot = self._count % SLOTS
        if isinstance(frame, DeviceFrame):
            frame.surface.await_on(self._stream)
            return FrameInFlight(self, frame, slot, frame.planes)
        assert self._staging is not None
        return FrameInFlight(self, frame, slot, self._staging.upload(frame, slot, self._stream))

    def launch(self, flight: FrameInFlight) -> None:
        """Enqueue the frame's work."""
        frame, number, slot = flight.frame, flight.slot, self._slots[flight.slot]
        with self._device.errors():
            controls = self._selector.begin(frame, self._stream)
            self._pixels.input.write(
                number,
                flight.planes,
                self._count,
                Keyframe.NONE if self._count else self._keyframe,
                frame.discontinuity,
                controls,
                self._feedback.keyframe_interval,
            )
            key = self._selector.graph_key if self._count >= _FIRST_WITH_GRAPH else None
            slot.run(lambda stream: self._selector.enqueue(frame, number, stream), key, self._stream)
            self._selector.enqueue_uncaptured(number, self._stream)
            slot.done.record(self._stream.handle)
            self._count += 1

    def finish(self, flight: FrameInFlight) -> Step | State:
        """Wait for the frame's work, and unpack its result."""
        self._slots[flight.slot].done.await_it()
        return self._selector.finish(flight.frame, flight.slot)

    def end(self) -> None:
        """Wait, and release everything. Safe to call twice."""
        self._releasing.close()


def kind_of(frame: AnyFrame) -> Kind:
    """What frames of one session have in common."""
    samples = frame.pixels.dtype if isinstance(frame, DeviceFrame) else None
    return frame.width, frame.height, frame.subsampled, frame.colour, samples
