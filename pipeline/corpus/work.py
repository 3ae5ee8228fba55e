"""One job, from the video to the ledger. Whoever does it, the same job gives the same bytes."""

import contextlib
import logging
import math
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Final

from foveate.pipeline.corpus.frame_files import FrameFile
from foveate.pipeline.corpus.jobs import ENDING, Job, Outcome, Task, failed
from foveate.pipeline.corpus.ledger import FRAMES, Ledger
from foveate.pipeline.corpus.segments import Portion, portion_of
from foveate.pipeline.corpus.store import open_store
from foveate.pipeline.errors import FoveateError, one_line
from foveate.pipeline.live.target import refuse_live
from foveate.pipeline.sources import length_of
from foveate.pipeline.sources.address import Named, is_network, shown
from foveate.pipeline.sources.file_objects import FileObject
from foveate.pipeline.sources.sampling import NothingShownError
from foveate.pipeline.sources.schemes import SCHEMES, scheme_of
from foveate.pipeline.stream import open_stream

_LOG: Final = logging.getLogger("foveate")
_MOST_SEGMENTS: Final = 99_999


class Workplace:
    """Does jobs of one task, one at a time."""

    def __init__(self, task: Task) -> None:
        """Raises SettingsError for a store of an unknown scheme."""
        self._task = task
        self._store = open_store(task.store)
        self._ledger = Ledger(self._store)

    def attempt(self, job: Job) -> Outcome:
        """Do a job, and write what became of it into the ledger. Raises nothing that one can go on after."""
        _LOG.debug("%s: begun", job.key)
        try:
            outcome = self._attempt(job)
            self._ledger.keep(outcome)
            _LOG.debug("%s: in the ledger", job.key)
        except ENDING as error:
            return Outcome(job.key, job.video, job.segment, "stop", str(error), error=type(error).__name__)
        return outcome

    def _attempt(self, job: Job) -> Outcome:
        try:
            return self._measured(job) if job.measures else self._selected(job)
        except ENDING:
            raise
        except FoveateError as error:
            return failed(job, str(error))
        except Exception as error:  # noqa: BLE001 - of one video, whatever it is
            return failed(job, f"{job.shown}: {type(error).__name__}: {one_line(error)}")

    def _measured(self, job: Job) -> Outcome:
        """How many segments a video has; where nothing tells its length, one."""
        assert self._task.segment is not None, "nothing is to be split"
        with source_of(job) as source:
            seconds = length_of(source, self._task.settings.source, self._task.settings.live)
        count = 1 if seconds is None else min(max(math.ceil(seconds / self._task.segment), 1), _MOST_SEGMENTS)
        return Outcome(job.key, job.video, None, "done", segments=count)

    def _selected(self, job: Job) -> Outcome:
        """Write the frames of a job; of a segment without any, none."""
        with source_of(job) as source:
            try:
                portion = portion_of(source, job, self._task)
            except NothingShownError:
                return Outcome(job.key, job.video, job.segment, "done")
            return self._written(source, job, portion)

    def _written(self, source: str, job: Job, portion: Portion) -> Outcome:
        name = f"{FRAMES}/{job.key}{self._task.suffix}"
        with contextlib.ExitStack() as kept:
            # The file is opened with the sink: a video that cannot be opened leaves the store alone.
            file = partial(kept.enter_context, self._store.whole(name))
            sink = FrameFile(job, self._task, file, f"{shown(self._task.store)}/{name}", portion.first)
            with open_stream(source, portion.settings, sinks=[sink], expect="file") as stream:
                _LOG.debug("%s: opened", job.key)
                stream.drain()
                _LOG.debug("%s: last frame", job.key)
        lost, counts = stream.damage.summary, (sink.frames, sink.tokens)
        return Outcome(job.key, job.video, job.segment, "done", "", *counts, lost, name, sink.bytes, sink.sha256)


@contextlib.contextmanager
def source_of(job: Job) -> Iterator[str]:
    """What the video is opened by, which is shown as the user gave it; from a bucket it is copied.

    Raises SourceError, also for live sources.
    """
    refuse_live(job.address, job.shown)
    with contextlib.ExitStack() as kept:
        if is_network(job.address) and scheme_of(job.address) not in SCHEMES:
            from foveate.pipeline.corpus.buckets import opened

            yield kept.enter_context(closing(FileObject(kept.enter_context(opened(job.address)), job.shown))).path
            return
        kept.enter_context(closing(Named(job.address, job.shown)))
        yield job.address
