"""The record of a frame that the kernels read: every field is written, in the slot that it is for. Needs no GPU."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.frame_input import SLOTS, FrameControls, FrameInput, InputPlanes
from foveate.cuda.state import FRAME_INPUT
from foveate.pipeline.spec.keyframes import Keyframe

WHOLE = {
    "planes": [1 << 40, 7, 8],
    "pitches": [64, 32, 16],
    "steps": [2, 4, 4],
    "wide": 1,
    "number": 5,
    "keyframe": 4,
    "discontinuity": 1,
    "feedback": 1,
    "budget": 90,
    "interval": 12,
}
PLAIN: dict[str, Any] = {
    "planes": [9, 0, 0],
    "pitches": [8, 8, 8],
    "steps": [1, 1, 1],
    **dict.fromkeys(("wide", "number", "keyframe", "discontinuity", "feedback", "budget", "interval"), 0),
}


class Host:
    """Stands in for Memory and what it allocates: page-locked arrays are full of ones, and copies are remembered."""

    def __init__(self) -> None:
        self.copied: list[NDArray[np.void]] = []

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        return np.full((*shape, dtype.itemsize), 0xFF, np.uint8).view(dtype).reshape(shape)

    def array(self, *_: Any) -> Any:
        return self

    def copy_from(self, pinned: NDArray[np.void], stream: Any) -> None:
        self.copied.append(pinned.copy())


def test_every_field_is_written() -> None:
    host: Any = Host()
    written = FrameInput(host, None)
    planes = InputPlanes((1 << 40, 7, 8), (64, 32, 16), (2, 4, 4), wide=True)
    written.write(0, planes, 5, Keyframe.SIZE, True, FrameControls(True, 90), 12)
    written.write(SLOTS - 1, InputPlanes((9, 0, 0), [8] * 3, (1, 1, 1)), 0, Keyframe.NONE, False, FrameControls(), None)
    for slot, expected in ((0, WHOLE), (SLOTS - 1, PLAIN)):
        written.upload(slot, None)
        record = host.copied[-1]
        assert set(expected) == set(FRAME_INPUT.names or ())
        assert {name: record[name].tolist() for name in expected} == expected
