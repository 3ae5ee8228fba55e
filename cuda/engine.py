"""The CUDA engine: one thread owns the GPU, and each frame is one CUDA graph launch."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from foveate.cuda.cascade.cascade import Cascade
from foveate.cuda.decode.source import DeviceSource
from foveate.cuda.device_selector import DeviceSelector
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.format_session import FormatSession, FrameInFlight, Selector, kind_of
from foveate.cuda.frames import AnyFrame
from foveate.cuda.host_selector import HostSelector, with_device_patches
from foveate.cuda.kernel_support import missing_kernels
from foveate.cuda.pixels.pixels import Pixels
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.chain import Stage
from foveate.pipeline.cpu.cascade import cascade
from foveate.pipeline.cpu.pyramid import State
from foveate.pipeline.flow import Flow
from foveate.pipeline.frames import Source
from foveate.pipeline.info import EngineInfo
from foveate.pipeline.live.opening import ENGINE, ENGINE_BEGUN, reached
from foveate.pipeline.live.source import LiveSource
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.selection import Step
from foveate.pipeline.spec.keyframes import Keyframe


class CudaEngine:
    """See pipeline.engine.Engine. All three stages, and a source with frames on the device, share one thread.

    Where the device lacks kernels for what is asked, it does the pixel work, and the CPU engine's Cascade chooses.
    """

    def __init__(
        self,
        plan: StreamPlan,
        feedback: Feedback,
        flow: Callable[[int], Flow | None] | None = None,
        lockstep: bool = False,
    ) -> None:
        """``flow`` gives the Flow of each frame by its index, instead of the device's search: to compare engines.

        ``lockstep``: each frame is unpacked before the next one is asked for.
        """
        missing = missing_kernels(plan)
        self.info: Final = EngineInfo("cuda", tokens_on_cpu=missing)
        self._chooses_on_host = missing is not None
        self._plan, self._settings = plan, plan.settings
        self._feedback = feedback
        self._flow = flow
        self._behind = 0 if lockstep else 1  # frames at work while one is unpacked
        self._open: tuple[Device, Stream] | None = None  # while ``cascade`` runs
        self._sessions: list[FormatSession] = []  # of this frame's format, behind one whose last frame is at work
        self._live: str | None = None  # the name of a live source
        self._debt: DeviceArray | None = None  # where the budget is an average; see Cascade

    def threads(self, source: Source, decode: Stage) -> list[list[Stage]]:
        """One thread for all that uses the GPU: the three stages, and ``decode`` where frames may be on the device.

        Two Steps may wait behind it, so that it does not stand still while the next one is about to be taken. A live
        frame is unpacked as soon as its work is done, and not when the next one comes.
        """
        live = isinstance(source, LiveSource)
        if live:
            self._behind, self._live = 0, source.info.name
        stages = [Stage("upload", self.upload), Stage("pyramid", self.pyramid), Stage("cascade", self.cascade, depth=2)]
        return [[decode, *stages]] if live or isinstance(source, DeviceSource) else [[decode], stages]

    def upload(self, frames: Iterable[AnyFrame]) -> Iterator[FrameInFlight]:
        """Bring each frame to the device. To be read by ``cascade``, which holds the device."""
        for frame in frames:
            if not self._sessions or self._sessions[-1].kind != kind_of(frame):
                self._sessions.append(self._new_session(frame))
            yield self._sessions[-1].upload(frame)

    def pyramid(self, uploaded: Iterable[FrameInFlight]) -> Iterator[FrameInFlight]:
        """Enqueue each frame's work, the Cascade's as well."""
        for flight in uploaded:
            flight.session.launch(flight)
            yield flight

    def cascade(self, launched: Iterable[FrameInFlight]) -> Iterator[Step]:
        """Unpack the Selection of each frame while the next one is at work. Holds the device for all three stages."""
        with Device(self._settings.device or 0) as device, device.errors():
            self._open = device, device.stream()
            memory = Memory(device)  # that outlasts the sessions
            try:
                if self._settings.allocation.budget_average is not None:
                    self._debt = memory.array("debt", (1,), np.int32, self._open[1])
                yield from self._steps(self._unpacked(launched), device)
            finally:
                sessions, self._sessions, self._open = self._sessions, [], None
                for session in sessions:
                    session.end()
                memory.free()

    def _unpacked(self, launched: Iterable[FrameInFlight]) -> Iterator[Any]:
        """The result of each frame, a Step or a State, ``_behind`` frames behind what is enqueued."""
        waiting: deque[FrameInFlight] = deque()
        for flight in launched:
            waiting.append(flight)
            del flight  # so that its memory can be reused while the next one is awaited
            if len(waiting) > self._behind:
                yield _finish(waiting.popleft())
                while len(self._sessions) > 1:  # those of earlier formats, now without frames
                    self._sessions.pop(0).end()
        while waiting:
            yield _finish(waiting.popleft())

    def _steps(self, unpacked: Iterator[Any], device: Device) -> Iterator[Step]:
        """Steps as they are, or made of States by the CPU engine's Cascade."""
        if not self._chooses_on_host:
            return unpacked
        settings = self._settings
        sampling = settings.model_copy(update={"patches": settings.patches or settings.device_patches})
        steps = cascade(unpacked, replace(self._plan, settings=sampling), self._feedback)
        return with_device_patches(steps, device, settings) if settings.device_patches else steps

    def _new_session(self, frame: AnyFrame) -> FormatSession:
        if self._open is None:
            raise RuntimeError("upload must be read by the engine's own cascade")
        device, stream = self._open
        keyframe = Keyframe.SIZE if self._sessions else Keyframe.FIRST
        self._note(ENGINE_BEGUN)
        session = FormatSession(device, frame, keyframe, self._settings, self._feedback, stream, self._selector)
        self._note(ENGINE)
        return session

    def _note(self, step: str) -> None:
        if self._live is not None:
            reached(self._live, step)

    def _selector(self, device: Device, pixels: Pixels, stream: Stream) -> Selector:
        if self._chooses_on_host:
            return HostSelector(device, pixels, self._plan, stream)
        chooser = Cascade(device, pixels.state, self._plan, self._feedback, stream, self._flow, self._debt)
        try:
            return DeviceSelector(device, pixels, chooser)
        except BaseException:
            chooser.free()
            raise


def _finish(flight: FrameInFlight) -> Step | State:
    return flight.session.finish(flight)
