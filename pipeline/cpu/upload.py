"""The Upload stage: finds changed tiles, and the keyframes on which everything is recomputed."""

from collections.abc import Iterable, Iterator

import numpy as np

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.change import ReferenceFrame, changed_tiles, planes_of
from foveate.pipeline.cpu.cuts import SceneCuts
from foveate.pipeline.cpu.noise import Noise
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.selection import KeyframeReason
from foveate.pipeline.settings import ChangeSettings

_Kind = tuple[tuple[int, int], bool, Colour]


def upload(frames: Iterable[Frame], settings: ChangeSettings, feedback: Feedback | None = None) -> Iterator[Update]:
    """Yield one Update per Frame."""
    uploader = Uploader(settings, feedback)
    for frame in frames:
        yield uploader.update(frame)


class Uploader:
    """Compares each frame with the reference frame."""

    def __init__(self, settings: ChangeSettings, feedback: Feedback | None = None) -> None:
        self._settings = settings
        self._feedback = feedback or Feedback()
        self._reference = ReferenceFrame()
        self._kind: _Kind | None = None
        self._geometry = Geometry(1, 1)
        self._noise = Noise(self._geometry, settings)
        self._cuts = SceneCuts(settings)
        self._since_keyframe = 0

    def update(self, frame: Frame) -> Update:
        """The Update of ``frame``; the tiles it writes become part of the reference frame."""
        changed, keyframe = self._examine(frame)
        self._noise.measure(frame.luma, keyframe not in (None, "periodic"))
        self._since_keyframe = self._frames_since(keyframe)
        written = np.ones_like(changed) if keyframe else changed
        if written.any():
            self._reference.write(planes_of(frame), written)
        return Update(frame, self._geometry, keyframe, changed, written, self._noise.level)

    def _examine(self, frame: Frame) -> tuple[Mask, KeyframeReason | None]:
        kind = (frame.luma.shape, frame.subsampled, frame.colour)
        if kind != self._kind:
            reason: KeyframeReason = "first" if self._kind is None else "size"
            self._kind, self._geometry = kind, Geometry(frame.width, frame.height)
            self._noise = Noise(self._geometry, self._settings)
            self._cuts.reset()
            return np.ones(self._geometry.tiles, np.bool_), reason
        reference = self._reference.planes()
        changed = changed_tiles(planes_of(frame), reference, self._noise.threshold, self._geometry)
        if frame.discontinuity:
            self._cuts.reset()
            return changed, "discontinuity"
        if self._cuts.is_cut(frame.luma, reference[0], changed):
            return changed, "cut"
        if self._since_keyframe + 1 >= self._interval:
            return changed, "periodic"
        return changed, None

    @property
    def _interval(self) -> int:
        return self._feedback.keyframe_interval or self._settings.keyframe_interval

    def _frames_since(self, keyframe: KeyframeReason | None) -> int:
        """Frames since the last one on which a periodic keyframe falls: they go by numbers, whatever else happens."""
        if keyframe in ("first", "size"):
            return self._settings.keyframe_offset % self._interval
        following = self._since_keyframe + 1
        return 0 if following >= self._interval else following
