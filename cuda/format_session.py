"""Frames of one size, colour and kind on their way through the device: one at work, one being unpacked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.calls import Event
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.graph import Graph, captured
from foveate.cuda.driver.memory import Memory
from foveate.cuda.frames import AnyFrame, DeviceFrame
from foveate.cuda.pixels.pixels import Pixels
from foveate.cuda.pixels.staging import Staging
from foveate.cuda.state import FRAME_INPUT, KEYFRAMES
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.pyramid import State
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.selection import KeyframeReason, Step
from foveate.pipeline.settings import Settings

SLOTS: Final = 2
"""Frames on their way: one at work on the device, one being unpacked on the host."""

_FIRST_WITH_GRAPH: Final = 1  # frame 0 is enqueued kernel by kernel, which also loads them

Kind = tuple[int, int, bool, Colour, Any]


class Selector(Protocol):
    """Where the tokens of frames of one size are chosen, and what the device does for it."""

    @property
    def captures(self) -> bool:
        """Whether a graph may replay what ``enqueue`` does, for any frame in the slot."""

    @property
    def graph_key(self) -> tuple[int, ...]:
        """A graph that was captured while this was another one is out of date."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Arrived:
    """A frame whose pixels are on the device, or on their way there."""

    session: FormatSession
    frame: AnyFrame
    slot: int


class _Slot:
    """What one frame on its way needs for itself."""

    def __init__(self, memory: Memory) -> None:
        self.given = memory.pinned((1,), FRAME_INPUT).reshape(())
        self.graph: Graph | None = None
        self.graph_key: tuple[int, ...] = ()  # the Selector's, when the graph was captured
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


class FormatSession:
    """Everything for frames of one size, colour and kind."""

    def __init__(
        self,
        device: Device,
        frame: AnyFrame,
        anew: KeyframeReason,
        settings: Settings,
        feedback: Feedback,
        stream: Stream,
        selector: Callable[[Device, Pixels, Stream], Selector],
    ) -> None:
        self.kind = kind_of(frame)
        self.before: FormatSession | None = None  # whose last frame may still be at work
        self._device, self._stream, self._feedback = device, stream, feedback
        self._anew = KEYFRAMES.index(anew)
        self._count = 0
        geometry = Geometry(frame.width, frame.height)
        with ExitStack() as undo:
            memory = Memory(device)
            undo.callback(memory.free)
            self._pixels = Pixels(device, geometry, frame.colour, frame.subsampled, settings, stream)
            undo.callback(self._pixels.free)
            self._selector = selector(device, self._pixels, stream)
            undo.callback(self._selector.free)
            self._staging = None if isinstance(frame, DeviceFrame) else Staging(device, memory, frame, SLOTS, stream)
            self._slots = [_Slot(memory) for _ in range(SLOTS)]
            for slot in self._slots:
                undo.callback(slot.free)
            undo.callback(stream.synchronize)
            self._releasing = undo.pop_all()

    def bring(self, frame: AnyFrame) -> Arrived:
        """Enqueue the copy of a host frame's planes, and note what the kernels must know of it."""
        number = self._count % SLOTS
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
        return Arrived(self, frame, number)

    def launch(self, arrived: Arrived) -> None:
        """Enqueue the frame's work."""
        with self._device.errors():
            self._launch(arrived, self._slots[arrived.slot])

    def _launch(self, arrived: Arrived, slot: _Slot) -> None:
        self._selector.begin(arrived.frame, slot.given, self._stream)
        slot.given["interval"] = self._feedback.keyframe_interval or 0
        self._replay(arrived, slot)
        self._selector.conclude(arrived.slot, self._stream)
        slot.done.record(self._stream.handle)
        self._count += 1

    def _replay(self, arrived: Arrived, slot: _Slot) -> None:
        """Enqueue the slot's graph, which is made where there is none yet."""
        if slot.graph_key != self._selector.graph_key:
            slot.forget_graph()
            slot.graph_key = self._selector.graph_key

        def enqueue(stream: Stream) -> None:
            self._selector.enqueue(arrived.frame, slot.given, arrived.slot, stream)

        if slot.graph is None and self._selector.captures and self._count >= _FIRST_WITH_GRAPH:
            slot.graph = captured(self._stream, enqueue)
        if slot.graph is None:
            enqueue(self._stream)
        else:
            slot.graph.launch(self._stream)

    def finish(self, arrived: Arrived) -> Step | State:
        """Wait for the frame's work, and unpack what it has brought."""
        self._slots[arrived.slot].done.await_it()
        return self._selector.finish(arrived.frame, arrived.slot)

    def forget_before(self) -> None:
        """Release the session before this one, whose last frame has been unpacked."""
        before, self.before = self.before, None
        if before is not None:
            before.end()

    def end(self) -> None:
        """Wait, and release everything."""
        self.forget_before()
        self._releasing.close()


def kind_of(frame: AnyFrame) -> Kind:
    """What frames of one session have in common."""
    samples = frame.pixels.dtype if isinstance(frame, DeviceFrame) else None
    return frame.width, frame.height, frame.subsampled, frame.colour, samples
