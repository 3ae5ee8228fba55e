"""Long videos in parts: which frames belong to a segment."""

from __future__ import annotations

from foveate.pipeline.corpus.jobs import Job, Task
from foveate.pipeline.keywords import overridden
from foveate.pipeline.settings import Settings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.sampling import TOLERANCE, NothingShownError


def segment_settings(source: str, job: Job, task: Task) -> Settings:
    """The settings by which a job's stream has the frames of its segment: those whose times lie in it, and no others.

    Raises NothingShownError where there is none.
    """
    if job.segment is None or job.segments == 1 or task.segment is None:
        return task.settings
    begin = job.segment * task.segment
    end = None if job.segments == job.segment + 1 else begin + task.segment
    first = first_time(source, begin, task.settings) if job.segment else 0.0
    if end is not None and first >= end - TOLERANCE:
        raise NothingShownError(f"{job.shown}: no frame is between {begin:g} s and {end:g} s")
    return overridden(task.settings, {"source": {"start": first, "end": end}})


def first_time(source: str, begin: float, settings: Settings) -> float:
    """The time of the first frame at ``begin`` or later: not of the one before it, although that is still shown then.

    Raises NothingShownError where there is none.
    """
    wanted = settings.source.model_copy(update={"start": begin, "frames": 2, "fps": None, "every": None})
    opened = open_source(source, wanted, settings.live)
    try:
        for frame in opened:
            if frame.time >= begin - TOLERANCE:
                return frame.time
    finally:
        opened.close()
    raise NothingShownError(f"no frame begins at {begin:g} s or later")
