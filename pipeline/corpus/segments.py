"""Long videos in parts: which frames belong to a segment, and which before them its stream has to see."""

from typing import Final, NamedTuple

from foveate.pipeline.corpus.jobs import Job, Task
from foveate.pipeline.frames import Frame
from foveate.pipeline.keywords import overridden
from foveate.pipeline.settings import Settings, SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.sampling import TOLERANCE, NothingShownError

_SPARE: Final = 3  # frames that a lead is longer than it has to be, where all frames last equally long


class Portion(NamedTuple):
    """What a job's stream is opened with."""

    settings: Settings
    first: int = 0  # the number of the first frame that belongs to the job; those before it are its lead


def portion_of(source: str, job: Job, task: Task) -> Portion:
    """The frames of a job: of a segment those whose times lie in it, and no others.

    With frame memory and without sampling, the stream begins some frames earlier, before the keyframe that precedes the
    segment, and has its periodic keyframes where the whole video has them. From that keyframe on it is what it would be
    in the whole video. Raises NothingShownError where there is no frame.
    """
    settings = task.settings
    if job.segment is None or job.segments == 1 or task.segment is None:
        return Portion(settings)
    begin = job.segment * task.segment
    end = None if job.segments == job.segment + 1 else begin + task.segment
    if job.segment == 0:
        return Portion(overridden(settings, {"source": {"end": end}}))
    first = _first_frame(source, begin, settings)
    if end is not None and first.time >= end - TOLERANCE:
        raise NothingShownError(f"{job.shown}: no frame is between {begin:g} s and {end:g} s")
    whole = overridden(settings, {"source": {"start": first.time, "end": end}})
    sampled = settings.source.fps is not None or settings.source.every is not None
    if settings.allocation.memory == "stream" or sampled:
        return Portion(whole, first.index)
    return _with_lead(source, first, whole)


def _first_frame(source: str, begin: float, settings: Settings) -> Frame:
    """The first frame at ``begin`` or later: not the one before it, although that is still shown then."""
    for frame in _frames(source, settings, begin, 2)[1]:
        if frame.time >= begin - TOLERANCE:
            return frame
    raise NothingShownError(f"no frame begins at {begin:g} s or later")


def _with_lead(source: str, first: Frame, settings: Settings) -> Portion:
    """The same, from before the last periodic keyframe that comes before ``first``."""
    change = settings.change
    interval, offset = change.keyframe_interval, change.keyframe_offset
    keyframe = (first.index - 1 + offset) // interval * interval - offset
    frames = first.index - keyframe + _SPARE
    while True:
        start, number = _earlier(source, first, frames, settings)
        if number < keyframe or number == 0:
            moved = {"change": {"keyframe_offset": (offset + number) % interval}, "source": {"start": start}}
            return Portion(overridden(settings, moved), first.index)
        frames *= 2  # frames last longer there than on average


def _earlier(source: str, first: Frame, frames: int, settings: Settings) -> tuple[float, int]:
    """Time and number of a frame that is about so many frames before ``first``."""
    rate, _ = _frames(source, settings, first.time, 1)
    start = max(first.time - frames / rate, 0.0)
    (frame,) = _frames(source, settings, start, 1)[1]
    return start, frame.index


def _frames(source: str, settings: Settings, start: float, count: int) -> tuple[float, list[Frame]]:
    """Frames a second on average, and the first frames that are shown at ``start`` or later."""
    plain = {"start": start, "end": None, "frames": count, "fps": None, "every": None}
    wanted = SourceSettings.model_validate({**settings.source.model_dump(), **plain})
    opened = open_source(source, wanted, settings.live)
    try:
        return opened.info.fps or wanted.rate, list(opened)
    finally:
        opened.close()
