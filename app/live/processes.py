"""``foveate live`` with many sources: they are read by several processes, which end and are started again alone."""

import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final

from foveate.app.console import Console
from foveate.app.live.arguments import LiveArguments
from foveate.app.live.latency import Histogram
from foveate.app.live.messages import SILENT, Answer, Ask, End, Figures, Job
from foveate.app.live.report import Report
from foveate.app.web.remote import RemoteSource
from foveate.pipeline.engine import gpu_count
from foveate.pipeline.live.backoff import Backoff
from foveate.pipeline.settings import Settings
from foveate.pipeline.sources.address import shown

_PATIENCE: Final = 5.0  # seconds that a process gets to answer
_TRIES: Final = 5  # ends in a row, each soon after the start, after which a process is not started again
_SOON: Final = 10.0  # seconds
_HUNG: Final = 60.0  # seconds without Figures, after which a process is killed
_GLANCE: Final = 1.0  # of these, the most that count at each look: this process may have been stopped as well


@dataclass(frozen=True, slots=True)
class Known:
    """How the sources fare. One object, so that whoever reads it counts nothing twice, and misses nothing."""

    figures: Figures | None = None  # of the present process; None: nothing was heard yet
    at: float = 0.0  # when they came, seconds by time.monotonic()
    earlier: Mapping[int, Report] = field(default_factory=dict)  # what processes that were killed had done, by number
    latencies: Mapping[int, Histogram] = field(default_factory=dict)  # the same, where there is a page


class SourceProcess:
    """Some of the sources, and the process that reads them. Used by the main thread, but for ``ask`` and ``known``."""

    def __init__(
        self, arguments: LiveArguments, numbers: Sequence[int], console: Console, ended: Callable[[], None]
    ) -> None:
        self.numbers = tuple(numbers)
        self.known = Known()
        self._arguments, self._console, self._ended = arguments, console, ended
        self._backoff = Backoff(arguments.settings.live.retry_pause)
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._reader: threading.Thread | None = None
        self._keys = itertools.count()
        self._asked: dict[int, Future[Any]] = {}
        self._sending = threading.Lock()
        self._began = self._due = 0.0  # when the process was started, and when it is to be started again
        self._failures = 0  # ends in a row, each soon after the start
        self._over = False  # not to be started again
        self._given_up: str | None = None
        self._heard = self._looked = self._silent = 0.0  # when Figures came, the last look, and seconds without any
        self._hung = False

    @property
    def alive(self) -> bool:
        """Whether it runs, or is to be started again."""
        return not self._over

    @property
    def settings(self) -> Settings:
        """Of its sources."""
        return self._arguments.settings

    def start(self) -> None:
        """Start a process."""
        here, there = Pipe()
        command = [sys.executable, "-m", "foveate.app.live.child", str(there.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL)
        there.close()
        self._pipe, self._began = here, time.monotonic()
        self._send(Job(self._arguments, self.numbers))
        self._reader = threading.Thread(target=self._read, args=(here,), name="foveate-process", daemon=True)
        self._reader.start()

    def check(self) -> None:
        """Where the process has ended: note that all is over, or start it again after a pause."""
        if self._over or self._process is None:
            return
        if self._due:
            if time.monotonic() >= self._due:
                self._due = 0.0
                self.start()
        elif self._process.poll() is not None:
            self._settle()
            if self._process.returncode == 0:
                self._over = True
            else:
                self._lost(self._process.returncode)
        elif self._is_hung():
            self._hung = True
            self._process.kill()

    def end(self, patience: float) -> None:
        """Tell it to end, without waiting."""
        self._over = True
        self._send(End(patience))

    def join(self, deadline: float) -> None:
        """Wait until it has ended; at the deadline (time.monotonic()) it is killed."""
        if self._process is None or self._due:
            return
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._settle()

    def reports(self) -> list[Report]:
        """What came of each source, over all processes."""
        known = self.known
        latest = known.figures.reports if known.figures else [self._empty(number) for number in self.numbers]
        merged = [each.behind(known.earlier[each.number]) if known.earlier else each for each in latest]
        return [replace(each, state="failed", error=self._given_up) for each in merged] if self._given_up else merged

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """What ``method`` of ShownSource gives for a source. From any thread.

        Raises ValueError where that does, and where the process does not answer.
        """
        known = self.known
        if known.figures is None or time.monotonic() - known.at > SILENT:
            raise ValueError("the source's process does not answer")
        key, future = next(self._keys), Future[Any]()
        self._asked[key] = future
        self._send(Ask(key, number, method, arguments))
        try:
            return future.result(_PATIENCE)
        except TimeoutError:
            raise ValueError("the source's process does not answer") from None
        finally:
            self._asked.pop(key, None)

    def _send(self, message: Any) -> None:
        pipe = self._pipe
        if pipe is not None:
            try:
                with self._sending:
                    pipe.send(message)
            except OSError:  # it has ended, which ``check`` finds
                return

    def _read(self, pipe: Connection) -> None:
        """What the process sends, until it has ended."""
        try:
            while True:
                message = pipe.recv()
                if isinstance(message, Figures):
                    self.known = replace(self.known, figures=message, at=time.monotonic())
                elif isinstance(message, Answer) and (future := self._asked.pop(message.key, None)) is not None:
                    if message.refusal is None:
                        future.set_result(message.value)
                    else:
                        future.set_exception(ValueError(message.refusal))
        except (EOFError, OSError):
            pass
        finally:
            self._ended()

    def _settle(self) -> None:
        """Read what an ended process had sent."""
        if self._reader is not None:
            self._reader.join(_PATIENCE)
        if self._pipe is not None:
            pipe, self._pipe = self._pipe, None
            pipe.close()

    def _is_hung(self) -> bool:
        """Whether nothing was heard for long, while this process was there to hear it."""
        heard, now = max(self._began, self.known.at), time.monotonic()
        spent, self._looked = min(_GLANCE, now - self._looked), now
        self._silent = self._silent + spent if heard == self._heard else 0.0
        self._heard = heard
        return self._silent >= _HUNG

    def _lost(self, code: int) -> None:
        """The process ended without having been told to."""
        lasted = time.monotonic() - self._began
        self.known = self._remembered()
        self._failures = self._failures + 1 if lasted < _SOON else 1
        self._backoff.ended(lasted)
        whose = f"the process of sources {self.numbers[0]} to {self.numbers[-1]}"
        cause = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        if self._hung:
            self._hung, cause = False, f"did not answer for {_HUNG:g} s and was killed"
        if self._failures >= _TRIES:
            self._over, self._given_up = True, f"its process {cause}"
            self._console.warn(f"{whose} {cause} {_TRIES} times in a row, and is not started again")
            return
        # A source that was there before is waited for.
        live = self._arguments.settings.live.model_copy(update={"wait": True})
        settings = self._arguments.settings.model_copy(update={"live": live})
        self._arguments = replace(self._arguments, settings=settings)
        self._due = time.monotonic() + self._backoff.pause()
        self._console.warn(f"{whose} {cause}; it is started again")

    def _remembered(self) -> Known:
        """The counts of a process that is gone, behind those of earlier ones."""
        told, latencies = self.known.figures, dict(self.known.latencies)
        statuses = told.statuses if told else ()
        for number, (_, latest) in zip(self.numbers, statuses, strict=bool(statuses)):
            latencies[number] = latest.plus(latencies.get(number, Histogram.empty()))
        return Known(earlier={report.number: report for report in self.reports()}, latencies=latencies)

    def _empty(self, number: int) -> Report:
        name = shown(self._arguments.addresses[number])
        return Report(number, name, "reconnecting" if self.known.earlier else "connecting")


class ProcessGroup:
    """Sources that are read by several processes. See group.Group."""

    def __init__(self, arguments: LiveArguments, console: Console, ended: Callable[[], None]) -> None:
        """``ended`` is called whenever a process has ended, by any thread."""
        count, several = len(arguments.addresses), arguments.processes
        cards = gpu_count(arguments.settings)
        self.processes = [
            SourceProcess(_on_card(arguments, place, cards), range(begin, end), console, ended)
            for place, (begin, end) in enumerate(pairwise(count * place // several for place in range(several + 1)))
        ]
        self._of = {number: process for process in self.processes for number in process.numbers}
        shown_ones = [] if arguments.web is None else range(count)
        self.shown = [RemoteSource(self._of[number], number) for number in shown_ones]

    @property
    def alive(self) -> bool:
        """Whether any is still read."""
        return any(process.alive for process in self.processes)

    def start(self) -> None:
        """Start all processes."""
        for process in self.processes:
            process.start()

    def check(self) -> None:
        """Start those again that were killed."""
        for process in self.processes:
            process.check()

    def end(self, patience: float) -> None:
        """See Group."""
        for process in self.processes:
            process.end(patience)
        deadline = time.monotonic() + patience + _PATIENCE
        for process in self.processes:
            process.join(deadline)

    def reports(self) -> list[Report]:
        """In the order of their numbers."""
        return sorted((each for process in self.processes for each in process.reports()), key=lambda each: each.number)

    def conclude(self) -> None:
        """There is more than one source."""


def _on_card(arguments: LiveArguments, place: int, cards: int) -> LiveArguments:
    """The arguments of a process: processes are spread over all GPUs, unless one is chosen."""
    if cards < 2 or arguments.settings.device is not None:
        return arguments
    return replace(arguments, settings=arguments.settings.model_copy(update={"device": place % cards}))
