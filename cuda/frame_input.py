"""What the kernels must know of a frame: the struct FrameInput of state.cuh, and its way to the device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.state import FRAME_INPUT
from foveate.pipeline.spec.keyframes import Keyframe

SLOTS: Final = 2
"""Frames in flight: one being processed on the device, one being unpacked on the host."""


@dataclass(frozen=True, slots=True)
class InputPlanes:
    """Where a frame's Y, Cb and Cr lie in device memory."""

    pointers: Sequence[int]  # first sample of each plane; null chroma: grey
    pitches: Sequence[int]  # bytes between rows
    steps: Sequence[int]  # bytes between samples of a row
    wide: bool = False  # samples have 16 bits, the value in the upper ones (P016)


@dataclass(frozen=True, slots=True)
class FrameControls:
    """How feedback changes the processing of a frame."""

    feedback: bool = False  # whether any was received since the last frame
    budget: int | None = None  # tokens, instead of the settings'


class FrameInput:
    """Owns the record of each slot, in page-locked memory, and the one on the device that the kernels read."""

    def __init__(self, memory: Memory, stream: Stream) -> None:
        """Raises EngineError where there is no memory."""
        self._records = [memory.pinned((1,), FRAME_INPUT).reshape(()) for _ in range(SLOTS)]
        self.on_device = memory.array("frame input", (), FRAME_INPUT, stream)

    def write(
        self,
        slot: int,
        planes: InputPlanes,
        number: int,
        keyframe: Keyframe,
        discontinuity: bool,
        controls: FrameControls,
        interval: int | None,
    ) -> None:
        """Fill in the record of the frame in ``slot``, whose last frame is done.

        ``number`` counts the frames of this size; ``keyframe`` is FIRST or SIZE on frame 0; ``interval`` is the number
        of frames between periodic keyframes, instead of the settings'.
        """
        record = self._records[slot]
        record["planes"] = planes.pointers
        record["pitches"] = planes.pitches
        record["steps"] = planes.steps
        record["wide"] = planes.wide
        record["number"] = number
        record["keyframe"] = int(keyframe)
        record["discontinuity"] = discontinuity
        record["feedback"] = controls.feedback
        record["budget"] = controls.budget or 0
        record["interval"] = interval or 0

    def upload(self, slot: int, stream: Stream) -> None:
        """Enqueue the copy of the slot's record to the device; can be captured."""
        self.on_device.copy_from(self._records[slot], stream)
