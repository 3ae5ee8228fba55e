"""The sources that one process reads, each in a thread of its own."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from foveate.app.console import Console
from foveate.app.inputs import refuse_inputs
from foveate.app.live.arguments import LiveArguments
from foveate.app.live.report import Report, report_of
from foveate.app.live.state_log import StateLog
from foveate.app.live.worker import SourceWorker
from foveate.app.web.latest_frames import LatestFrames
from foveate.app.web.shown import LocalSource, ShownSource
from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import Sink, open_overlay, open_sink

FAREWELL: Final = 1.5  # seconds that all sources together get to end where nobody says how long


class Group(Protocol):
    """Sources that are read, in this process or in others. Used by the main thread."""

    @property
    def shown(self) -> Sequence[ShownSource]:
        """What the page shows of each."""

    @property
    def alive(self) -> bool:
        """Whether any is still read."""

    def start(self) -> None:
        """Begin."""

    def check(self) -> None:
        """What has to be done now and then."""

    def end(self, patience: float) -> None:
        """Tell all to end, and wait at most ``patience`` seconds for those that have outputs to finish."""

    def reports(self) -> list[Report]:
        """What came of each so far."""

    def conclude(self) -> None:
        """Raise the error of the only source, if there was one."""


class SourceGroup:
    """Sources that are read in this process. See Group."""

    def __init__(
        self, arguments: LiveArguments, numbers: Iterable[int], console: Console, ended: Callable[[], None]
    ) -> None:
        """``ended`` is called whenever a source has ended, by any thread. Raises SettingsError and SinkError."""
        self._console, self._several = console, len(arguments.addresses) > 1
        self._reported: set[int] = set()  # numbers of sources whose error was printed
        self.workers: list[SourceWorker] = []
        self.shown: list[LocalSource] = []
        for number in numbers:
            frames = None if arguments.web is None else LatestFrames()
            sinks = [*sinks_of(arguments, number), *([] if frames is None else [frames])]
            log = StateLog(console.say, quiet=arguments.quiet)
            settings = _settings_of(arguments, number)
            worker = SourceWorker(number, arguments.addresses[number], settings, sinks, log, ended)
            self.workers.append(worker)
            if frames is not None:
                frames.worker = worker
                self.shown.append(LocalSource(frames, number))

    @property
    def alive(self) -> bool:
        """Whether any is still read."""
        return any(worker.alive for worker in self.workers)

    def start(self) -> None:
        """Start the threads."""
        for worker in self.workers:
            worker.start()

    def check(self) -> None:
        """Print changes of state that were held back, and an error of one of several when it happens."""
        for worker in self.workers:
            worker.log.flush()
            if self._several and worker.error is not None and worker.number not in self._reported:
                self._reported.add(worker.number)
                self._console.warn(f"source {worker.number} failed: {worker.error}")

    def end(self, patience: float) -> None:
        """See Group."""
        end_workers(self.workers, patience)
        for worker in self.workers:
            if worker.alive and worker.stream is not None:
                limit = f"{patience:g} s"
                self._console.warn(f"source {worker.number} did not end within {limit}; its outputs may be incomplete")

    def reports(self) -> list[Report]:
        """What came of each so far."""
        return [report_of(worker) for worker in self.workers]

    def conclude(self) -> None:
        """Raise the error of the only source. Raises SourceError where no picture of it came."""
        if self._several:
            return
        (worker,) = self.workers
        if worker.error is not None:
            raise worker.error
        if worker.stream is None:
            raise SourceError(report_of(worker).never_seen())


def end_workers(workers: Sequence[SourceWorker], patience: float) -> None:
    """Tell all to end, and wait at most ``patience`` seconds for those that have outputs to finish."""
    for worker in workers:
        worker.stop()
    deadline = time.monotonic() + patience
    for worker in workers:
        if worker.stream is not None:  # else it is still connecting, and has written nothing
            worker.join(deadline - time.monotonic())


def sinks_of(arguments: LiveArguments, number: int) -> list[Sink]:
    """The outputs of a source. Raises SettingsError and SinkError."""
    outputs, overlay = arguments.outputs_of(number), arguments.overlay_of(number)
    refuse_inputs([*outputs, *filter(None, [overlay])], arguments.addresses[number], arguments.settings)
    sinks: list[Sink] = [open_sink(name, arguments.rotation) for name in outputs]
    return [*sinks, *(open_overlay(name, arguments.rotation) for name in filter(None, [overlay]))]


def _settings_of(arguments: LiveArguments, number: int) -> Settings:
    """The settings of a source: of several, periodic keyframes do not fall on the same moment."""
    settings, count = arguments.settings, len(arguments.addresses)
    change = settings.change
    if count == 1 or change.keyframe_offset:
        return settings
    offset = number * change.keyframe_interval // count
    return settings.model_copy(update={"change": change.model_copy(update={"keyframe_offset": offset})})
