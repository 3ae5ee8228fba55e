"""Frames whose tokens are chosen on the device: pixels, Cascade and the record of the tokens are one graph's work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.cascade import Cascade
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.frame_kernels import FrameKernels
from foveate.cuda.frames import AnyFrame
from foveate.cuda.pixels.pixels import Pixels
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.flow import Flow
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.selection import Step

GivenFlow = Callable[[int], Flow | None]


class DeviceSelector:
    """A format_session.Selector. With queries the host may look into a frame, so nothing can be captured."""

    def __init__(
        self,
        device: Device,
        pixels: Pixels,
        plan: StreamPlan,
        feedback: Feedback,
        stream: Stream,
        flow: GivenFlow | None,
        debt: DeviceArray | None,
    ) -> None:
        """``debt`` is as Cascade's. Raises EngineError where the card is full."""
        self._cascade = Cascade(device, pixels.state, plan, feedback, stream, flow, debt)
        try:
            self._kernels = FrameKernels(device, pixels, self._cascade)
        except BaseException:
            self._cascade.free()
            raise

    @property
    def captures(self) -> bool:
        """Whether a graph may replay what ``enqueue`` does."""
        return self._cascade.device_query is None

    @property
    def graph_key(self) -> tuple[int, ...]:
        """See Cascade.graph_key."""
        return self._cascade.graph_key

    def begin(self, frame: AnyFrame, given: NDArray[np.void], stream: Stream) -> None:
        """Take what was fed in."""
        given["fed"] = self._cascade.begin(frame.index, stream)
        given["budget"] = self._cascade.budget

    def enqueue(self, frame: AnyFrame, given: NDArray[np.void], slot: int, stream: Stream) -> None:
        """All of the frame's work, up to the copies into ``slot``."""
        self._kernels.enqueue(given, slot, stream, frame)

    def conclude(self, slot: int, stream: Stream) -> None:
        """See Cascade.lend_patches."""
        self._cascade.lend_patches(slot, stream)

    def finish(self, frame: AnyFrame, slot: int) -> Step:
        """The frame's Selection."""
        return Step(frame, self._cascade.selection(frame, slot))

    def free(self) -> None:
        """Give all memory back. Nothing enqueued may still run."""
        self._cascade.free()
