"""Other ways to find scene cuts: a volume of the last eight frames, and PySceneDetect.

Each takes the frames of a clip, R'G'B' uint8[H, W, 3], and returns those that it says are cuts.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import CELL

DEPTH: Final = 8
"""Frames in the volume."""
_ALIKE: Final = 0.5  # correlation from which on two frames show the same
_SMOOTH: Final = 5  # cells along the neighbourhood whose mean is taken away
_PLAIN: Final = 2.0  # grey levels: a frame with less structure shows nothing
_RATE: Final = 25.0  # frames a second, for what counts times

Frames = Sequence[NDArray[np.uint8]]
Map = NDArray[np.float32]


def at_once(frames: Frames) -> set[int]:
    """Frames that resemble none of the seven before, of which the last two resemble each other."""
    return volume_cuts(structures(frames))


def one_frame_later(frames: Frames) -> set[int]:
    """Those of ``at_once`` whose next frame resembles them, and not the frame before them."""
    return lasting(structures(frames), at_once(frames))


def content(frames: Frames) -> set[int]:
    """PySceneDetect's ContentDetector with its defaults: hue, saturation and brightness of the pixels."""
    from scenedetect import ContentDetector

    return _detected(ContentDetector(), frames)


def adaptive(frames: Frames) -> set[int]:
    """PySceneDetect's AdaptiveDetector with its defaults: as ``content``, beside the frames before and behind."""
    from scenedetect import AdaptiveDetector

    return _detected(AdaptiveDetector(), frames)


PEERS: Final[Mapping[str, Callable[[Frames], set[int]]]] = {
    "volume": at_once,
    "volume, one frame later": one_frame_later,
    "PySceneDetect, content": content,
    "PySceneDetect, adaptive": adaptive,
}


def _detected(detector: object, frames: Frames) -> set[int]:
    from scenedetect import FrameTimecode
    from scenedetect.detector import SceneDetector

    assert isinstance(detector, SceneDetector)
    found = set()
    for index, frame in enumerate(frames):
        time = FrameTimecode(index, _RATE)
        found.update(detector.process_frame(time, cv2.cvtColor(frame, cv2.COLOR_RGB2BGR)))
    found.update(detector.post_process(time))
    return {time.frame_num for time in found}


def structures(frames: Frames) -> list[Map]:
    """The cells' mean luma of each frame without their neighbourhood's: float32[rows, columns]."""
    size = frames[0].shape[1] // CELL, frames[0].shape[0] // CELL
    means = (
        cv2.resize(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), size, interpolation=cv2.INTER_AREA).astype(np.float32)
        for frame in frames
    )
    return [mean - cv2.blur(mean, (_SMOOTH, _SMOOTH), borderType=cv2.BORDER_REPLICATE) for mean in means]


def volume_cuts(frames: Sequence[Map]) -> set[int]:
    """``at_once``, of the frames' structures."""
    volume: deque[Map] = deque(maxlen=DEPTH - 1)
    found = set()
    for index, frame in enumerate(frames):
        steady = len(volume) > 1 and likeness(volume[-1], volume[-2]) >= _ALIKE
        if steady and all(likeness(frame, before) < _ALIKE for before in volume) and shows(frame):
            found.add(index)
        volume.append(frame)
    return found


def lasting(frames: Sequence[Map], cuts: set[int]) -> set[int]:
    """Those of ``cuts`` whose next frame resembles them, and not the frame before them."""
    return {
        index
        for index in cuts
        if index + 1 < len(frames)
        and likeness(frames[index], frames[index + 1]) >= _ALIKE
        and likeness(frames[index - 1], frames[index + 1]) < _ALIKE
    }


def likeness(one: Map, other: Map) -> float:
    """Correlation of two frames' structures, in [-1, 1]; 0 where one has none."""
    norm = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.vdot(one, other)) / norm if norm else 0.0


def shows(frame: Map) -> bool:
    """Whether a frame has any structure."""
    return bool(np.sqrt(np.mean(frame**2)) >= _PLAIN)
