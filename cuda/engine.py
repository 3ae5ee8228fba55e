"""The CUDA engine: one thread owns the GPU, one graph launch does all of its work on a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.calls import Event
from foveate.cuda.device import Device, Stream
from foveate.cuda.frames import AnyFrame, DeviceFrame
from foveate.cuda.graph import Graph, captured
from foveate.cuda.memory import Memory
from foveate.cuda.on_device import GivenFlow, OnDevice
from foveate.cuda.on_host import OnHost, lacking_on_device, with_device_patches
from foveate.cuda.pixels.pixels import Pixels
from foveate.cuda.pixels.staging import Staging
from foveate.cuda.state import FRAME_INPUT, KEYFRAMES
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cascade.loaded import load
from foveate.pipeline.chain import Sharing
from foveate.pipeline.cpu.cascade import cascade
from foveate.pipeline.cpu.pyramid import State
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.asked import Asked
from foveate.pipeline.selection import KeyframeReason, Step
from foveate.pipeline.settings import Settings

_SLOTS = 2  # frames on their way: one at work on the device, one being unpacked on the host
_FIRST_WITH_GRAPH = 1  # frame 0 is enqueued kernel by kernel, which also loads them

_Kind = tuple[int, int, bool, Colour, Any]


class CudaEngine:
    """See pipeline.engine.Engine. All three stages, and a source with frames on the device, share one thread.

    Where the device lacks kernels for what is asked, it does the pixel work, and the CPU engine's Cascade chooses.
    """

    name: Final = "cuda"
    shares_thread: Sharing = "always"

    def __init__(
        self, settings: Settings, feedback: Feedback, asked: Asked | None = None, flow: GivenFlow | None = None
    ) -> None:
        """``flow`` gives the Flow of each frame by its index, instead of the device's search: to compare engines.

        Raises SettingsError for files and modules that cannot be loaded.
        """
        lacking = lacking_on_device(settings, asked)
        self.notes: tuple[str, ...] = (f"tokens chosen on the CPU: {lacking}",) if lacking else ()
        self._loaded = load(settings) if lacking else None
        self._settings = settings
        self._feedback = feedback
        self._asked = asked
        self._flow = flow
        self._open: tuple[Device, Stream] | None = None  # while ``cascade`` runs
        self._session: _Session | None = None

    def upload(self, frames: Iterable[AnyFrame]) -> Iterator[_Arrived]:
        """Bring each frame to the device, which ``cascade`` has taken."""
        for frame in frames:
            if self._session is None or self._session.kind != _kind(frame):
                self._session = self._next_session(frame)
            yield self._session.bring(frame)

    def pyramid(self, updates: Iterable[_Arrived]) -> Iterator[_Arrived]:
        """Enqueue each frame's work, the Cascade's as well."""
        for arrived in updates:
            arrived.session.launch(arrived)
            yield arrived

    def cascade(self, states: Iterable[_Arrived]) -> Iterator[Step]:
        """Unpack the Selection of each frame while the next one is at work. Holds the device for all three stages."""
        with Device() as device, device.errors():
            self._open = device, device.stream()
            try:
                yield from self._steps(_unpacked(states), device)
            finally:
                session, self._session, self._open = self._session, None, None
                if session is not None:
                    session.end()

    def _steps(self, unpacked: Iterator[Any], device: Device) -> Iterator[Step]:
        """The Steps, which are there already, or are made of States."""
        if self._loaded is None:
            return unpacked
        settings = self._settings
        sampling = settings.model_copy(update={"patches": settings.patches or settings.device_patches})
        steps = cascade(unpacked, sampling, self._feedback, self._asked, self._loaded)
        return with_device_patches(steps, device, settings) if settings.device_patches else steps

    def _next_session(self, frame: AnyFrame) -> _Session:
        if self._open is None:
            raise RuntimeError("upload must be read by the engine's own cascade")
        device, stream = self._open
        anew: KeyframeReason = "size" if self._session else "first"
        session = _Session(device, frame, anew, self._settings, self._feedback, stream, self._choice)
        session.before = self._session
        return session

    def _choice(self, device: Device, pixels: Pixels, stream: Stream) -> Choice:
        if self._loaded is not None:
            return OnHost(device, pixels, self._settings, _SLOTS)
        return OnDevice(device, pixels, self._settings, self._feedback, stream, self._asked, self._flow)


class Choice(Protocol):
    """Where the tokens of frames of one size are chosen, and what the device does for it."""

    @property
    def captures(self) -> bool:
        """Whether a graph may replay what ``enqueue`` does, for any frame in the slot."""

    @property
    def room(self) -> int:
        """A graph that was captured while this was another number is out of date."""

    def begin(self, frame: AnyFrame, given: NDArray[np.void], stream: Stream) -> None:
        """Before the frame's work: fill in what FRAME_INPUT says of the choice."""

    def enqueue(self, frame: AnyFrame, given: NDArray[np.void], slot: int, stream: Stream) -> None:
        """All of the frame's work, from a page-locked FRAME_INPUT to the copies into ``slot``."""

    def conclude(self, slot: int, stream: Stream) -> None:
        """Enqueue what follows it and is not captured."""

    def finish(self, frame: AnyFrame, slot: int) -> Step | State:
        """What has arrived in ``slot``: the tokens, or what the CPU engine's Cascade chooses them from."""

    def free(self) -> None:
        """Give all memory back. Nothing enqueued may still run."""


def _unpacked(states: Iterable[_Arrived]) -> Iterator[Step | State]:
    """One frame behind what is enqueued."""
    pending: _Arrived | None = None
    for arrived in states:
        if pending is not None:
            yield pending.session.finish(pending)
            if pending.session is not arrived.session:
                arrived.session.forget_before()
        pending = arrived
        del arrived  # not to be held while waiting for the next one
    if pending is not None:
        yield pending.session.finish(pending)


@dataclass(frozen=True, slots=True, eq=False)
class _Arrived:
    """A frame whose pixels are on the device, or on their way there."""

    session: _Session
    frame: AnyFrame
    slot: int


class _Slot:
    """What one frame on its way needs for itself."""

    def __init__(self, memory: Memory) -> None:
        self.given = memory.pinned((1,), FRAME_INPUT).reshape(())
        self.graph: Graph | None = None
        self.room = 0  # the Choice's, when the graph was captured
        self.done = Event()

    def forget_graph(self) -> None:
        """Release the graph, whose last launch has ended."""
        if self.graph is not None:
            self.graph.free()
            self.graph = None

    def free(self) -> None:
        """Release the graph and the event."""
        self.forget_graph()
        self.done.free()


class _Session:
    """Everything for frames of one size, colour and kind."""

    def __init__(
        self,
        device: Device,
        frame: AnyFrame,
        anew: KeyframeReason,
        settings: Settings,
        feedback: Feedback,
        stream: Stream,
        choice: Callable[[Device, Pixels, Stream], Choice],
    ) -> None:
        self.kind = _kind(frame)
        self.before: _Session | None = None  # whose last frame may still be at work
        self._device, self._stream, self._feedback = device, stream, feedback
        self._anew = KEYFRAMES.index(anew)
        self._count = 0
        geometry = Geometry(frame.width, frame.height)
        with ExitStack() as undo:
            memory = Memory(device)
            undo.callback(memory.free)
            self._pixels = Pixels(device, geometry, frame.colour, frame.subsampled, settings, stream)
            undo.callback(self._pixels.free)
            self._choice = choice(device, self._pixels, stream)
            undo.callback(self._choice.free)
            self._staging = None if isinstance(frame, DeviceFrame) else Staging(device, memory, frame, _SLOTS, stream)
            self._slots = [_Slot(memory) for _ in range(_SLOTS)]
            for slot in self._slots:
                undo.callback(slot.free)
            undo.callback(stream.synchronize)
            self._releasing = undo.pop_all()

    def bring(self, frame: AnyFrame) -> _Arrived:
        """Enqueue the copy of a host frame's planes, and note what the kernels must know of it."""
        number = self._count % _SLOTS
        slot = self._slots[number]
        if isinstance(frame, DeviceFrame):
            frame.describe(slot.given)
            frame.surface.await_on(self._stream)
        else:
            assert self._staging is not None
            self._staging.bring(frame, number, slot.given, self._stream)
        slot.given["number"] = self._count
        slot.given["anew"] = self._anew if self._count == 0 else 0
        slot.given["discontinuity"] = frame.discontinuity
        return _Arrived(self, frame, number)

    def launch(self, arrived: _Arrived) -> None:
        """Enqueue the frame's work."""
        with self._device.errors():
            self._launch(arrived, self._slots[arrived.slot])

    def _launch(self, arrived: _Arrived, slot: _Slot) -> None:
        self._choice.begin(arrived.frame, slot.given, self._stream)
        slot.given["interval"] = self._feedback.keyframe_interval or 0
        self._replay(arrived, slot)
        self._choice.conclude(arrived.slot, self._stream)
        slot.done.record(self._stream.handle)
        self._count += 1

    def _replay(self, arrived: _Arrived, slot: _Slot) -> None:
        """Enqueue the slot's graph, which is made where there is none yet."""
        if slot.room != self._choice.room:
            slot.forget_graph()
            slot.room = self._choice.room

        def enqueue(stream: Stream) -> None:
            self._choice.enqueue(arrived.frame, slot.given, arrived.slot, stream)

        if slot.graph is None and self._choice.captures and self._count >= _FIRST_WITH_GRAPH:
            slot.graph = captured(self._stream, enqueue)
        if slot.graph is None:
            enqueue(self._stream)
        else:
            slot.graph.launch(self._stream)

    def finish(self, arrived: _Arrived) -> Step | State:
        """Wait for the frame's work, and unpack what it has brought."""
        self._slots[arrived.slot].done.await_it()
        return self._choice.finish(arrived.frame, arrived.slot)

    def forget_before(self) -> None:
        """Release the session before this one, whose last frame has been unpacked."""
        before, self.before = self.before, None
        if before is not None:
            before.end()

    def end(self) -> None:
        """Wait, and release everything."""
        self.forget_before()
        self._releasing.close()


def _kind(frame: AnyFrame) -> _Kind:
    """What frames of one session have in common."""
    samples = frame.pixels.dtype if isinstance(frame, DeviceFrame) else None
    return frame.width, frame.height, frame.subsampled, frame.colour, samples
