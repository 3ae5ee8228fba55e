"""The CUDA engine: one thread owns the GPU, one graph launch does all of its work on a frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from foveate.cuda.decode.source import DeviceSource
from foveate.cuda.device_selector import DeviceSelector, GivenFlow
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.format_session import SLOTS, Arrived, FormatSession, Selector, kind_of
from foveate.cuda.frames import AnyFrame
from foveate.cuda.host_selector import HostSelector, lacking_on_device, with_device_patches
from foveate.cuda.pixels.pixels import Pixels
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.chain import Stage
from foveate.pipeline.cpu.cascade import cascade
from foveate.pipeline.cpu.pyramid import State
from foveate.pipeline.frames import Source
from foveate.pipeline.info import EngineInfo
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.selection import KeyframeReason, Step


class CudaEngine:
    """See pipeline.engine.Engine. All three stages, and a source with frames on the device, share one thread.

    Where the device lacks kernels for what is asked, it does the pixel work, and the CPU engine's Cascade chooses.
    """

    def __init__(
        self,
        plan: StreamPlan,
        feedback: Feedback,
        flow: GivenFlow | None = None,
        lockstep: bool = False,
    ) -> None:
        """``flow`` gives the Flow of each frame by its index, instead of the device's search: to compare engines.

        ``lockstep``: each frame is unpacked before the next one is asked for.
        """
        lacking = lacking_on_device(plan)
        self.info: Final = EngineInfo("cuda", tokens_on_cpu=lacking)
        self._chooses_on_host = lacking is not None
        self._plan, self._settings = plan, plan.settings
        self._feedback = feedback
        self._flow = flow
        self._unpacked = _at_once if lockstep else _unpacked
        self._open: tuple[Device, Stream] | None = None  # while ``cascade`` runs
        self._session: FormatSession | None = None
        self._debt: DeviceArray | None = None  # where the budget is an average; see Cascade

    def threads(self, source: Source, decode: Stage) -> list[list[Stage]]:
        """One thread for all that uses the GPU: the three stages, and ``decode`` where ``source`` is a DeviceSource.

        Two Steps may wait behind it, so that it does not stand still while the next one is about to be taken.
        """
        stages = [Stage("upload", self.upload), Stage("pyramid", self.pyramid), Stage("cascade", self.cascade, depth=2)]
        return [[decode, *stages]] if isinstance(source, DeviceSource) else [[decode], stages]

    def upload(self, frames: Iterable[AnyFrame]) -> Iterator[Arrived]:
        """Bring each frame to the device, which ``cascade`` has taken."""
        for frame in frames:
            if self._session is None or self._session.kind != kind_of(frame):
                self._session = self._next_session(frame)
            yield self._session.bring(frame)

    def pyramid(self, updates: Iterable[Arrived]) -> Iterator[Arrived]:
        """Enqueue each frame's work, the Cascade's as well."""
        for arrived in updates:
            arrived.session.launch(arrived)
            yield arrived

    def cascade(self, states: Iterable[Arrived]) -> Iterator[Step]:
        """Unpack the Selection of each frame while the next one is at work. Holds the device for all three stages."""
        with Device() as device, device.errors():
            self._open = device, device.stream()
            memory = Memory(device)  # of what outlasts the sessions
            try:
                if self._settings.allocation.budget_average is not None:
                    self._debt = memory.array("debt", (1,), np.int32, self._open[1])
                yield from self._steps(self._unpacked(states), device)
            finally:
                session, self._session, self._open = self._session, None, None
                if session is not None:
                    session.end()
                memory.free()

    def _steps(self, unpacked: Iterator[Any], device: Device) -> Iterator[Step]:
        """The Steps, which are there already, or are made of States."""
        if not self._chooses_on_host:
            return unpacked
        settings = self._settings
        sampling = settings.model_copy(update={"patches": settings.patches or settings.device_patches})
        steps = cascade(unpacked, replace(self._plan, settings=sampling), self._feedback)
        return with_device_patches(steps, device, settings) if settings.device_patches else steps

    def _next_session(self, frame: AnyFrame) -> FormatSession:
        if self._open is None:
            raise RuntimeError("upload must be read by the engine's own cascade")
        device, stream = self._open
        anew: KeyframeReason = "size" if self._session else "first"
        session = FormatSession(device, frame, anew, self._settings, self._feedback, stream, self._selector)
        session.before = self._session
        return session

    def _selector(self, device: Device, pixels: Pixels, stream: Stream) -> Selector:
        if self._chooses_on_host:
            return HostSelector(device, pixels, self._plan, SLOTS, stream)
        return DeviceSelector(device, pixels, self._plan, self._feedback, stream, self._flow, self._debt)


def _unpacked(states: Iterable[Arrived]) -> Iterator[Step | State]:
    """One frame behind what is enqueued."""
    pending: Arrived | None = None
    for arrived in states:
        if pending is not None:
            yield pending.session.finish(pending)
            if pending.session is not arrived.session:
                arrived.session.forget_before()
        pending = arrived
        del arrived  # not to be held while waiting for the next one
    if pending is not None:
        yield pending.session.finish(pending)


def _at_once(states: Iterable[Arrived]) -> Iterator[Step | State]:
    for arrived in states:
        yield arrived.session.finish(arrived)
        arrived.session.forget_before()
        del arrived  # not to be held while waiting for the next one
