"""Runs stages in threads, joined by bounded queues, and ends them on every way out."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from foveate.pipeline.bounded_queue import END, BoundedQueue, Cancelled
from foveate.pipeline.chain import Chain, Stage
from foveate.pipeline.timing import StageClock, StageReport

_JOIN_TIMEOUT = 10.0  # seconds that stages get to end; finishing a video file takes a while
_READER_JOIN_TIMEOUT = 1.0  # the same for the first stage, which only reads and so has nothing to lose

_log = logging.getLogger(__name__)


class Runner:
    """Chains stages; iterating yields, in the caller's thread, what the last stage yields.

    ``threads`` are the stages in their order, those that share a thread in one list. The first stage receives an empty
    upstream: it is the one that reads. A stage's generator is created, run and closed by its thread only. A stage that
    ends early ends those before it; what it made still arrives.

    An error in any stage cancels all the others and is raised to the caller as it is, with a note that names
    the stage; errors that follow from it become further notes. Use it as a context manager, or call close().
    Until it is iterated nothing runs: no stage is created, and so none can close anything either.

    ``in_flight`` is for stages that yield one item per item: the first is asked for a new one only while fewer than
    that many are on their way, the one that the caller works on included. ``interrupt`` is called, from any thread and
    any number of times, when all stages shall end: it ends a wait inside the first stage.

    Raises ValueError for no stages, a thread without one, or a depth below 1.
    """

    def __init__(
        self,
        threads: Sequence[Sequence[Stage]],
        in_flight: int | None = None,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        if not threads or not all(threads):
            raise ValueError("each thread must have at least one stage, and there must be at least one thread")
        self._clocks = [[StageClock(stage.name) for stage in stages] for stages in threads]
        self._flight = None if in_flight is None else BoundedQueue(in_flight)  # holds a mark for each item on its way
        self._out = _Outlet(threads[-1][-1].depth, self._flight)
        self._queues = [*(BoundedQueue(stages[-1].depth) for stages in threads[:-1]), self._out]
        everything = self._queues if self._flight is None else [*self._queues, self._flight]

        def cancel() -> None:
            for queue in everything:
                queue.cancel()
            if interrupt is not None:
                interrupt()

        self._failures = _Failures(cancel)
        self._crew = _Crew([self._thread(position, stages) for position, stages in enumerate(threads)], cancel)
        self._started = False
        weakref.finalize(self, self._crew.end)  # when it is garbage, and when the interpreter ends

    def __iter__(self) -> Iterator[Any]:
        """Start the threads and yield. Raises RuntimeError the second time, and what a stage raises."""
        if self._started:
            raise RuntimeError("a Runner can be iterated once, and this one was")
        self._started = True
        try:
            self._crew.start()
            while (item := self._out.get()) is not END:
                yield item
                del item
                if self._flight is not None:
                    self._flight.get()
        except Cancelled:
            pass
        finally:
            self._crew.end()
        self._failures.throw()

    def drain(self) -> None:
        """Run to the end, in place of iterating: what the last stage yields ends in its thread. Raises as ``iter``."""
        self._out.keeps = False
        for _ in self:
            pass

    def cancel(self) -> None:
        """Tell all stages to end, without waiting. From any thread, any number of times."""
        self._crew.cancel()

    def close(self) -> None:
        """End all stages and wait for their threads. From any thread, any number of times.

        Raises what a stage raised, unless the caller has seen it. A thread that sits in one call for longer
        than 1 s (the first stage) or 10 s (the others) is logged and left; it ends when that call returns.
        """
        self._crew.end()
        self._failures.throw()

    def report(self) -> tuple[StageReport, ...]:
        """Where the time of each stage went so far. From any thread, also while running."""
        return tuple(clock.report() for clocks in self._clocks for clock in clocks)

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._crew.end()
        if error is None:
            self._failures.throw()
        else:
            self._failures.note_on(error)

    def _thread(self, position: int, stages: Sequence[Stage]) -> threading.Thread:
        upstream = self._queues[position - 1] if position else None
        flight = None if position else self._flight
        work = _Work(stages, upstream, self._queues[position], self._clocks[position], self._failures, flight)
        # Daemon, so that a decoder that never returns cannot keep the process from ending.
        name = "foveate-" + "-".join(stage.name for stage in stages)
        return threading.Thread(target=work.run, name=name, daemon=True)


class _Outlet(BoundedQueue):
    """What the caller gets. Where the caller takes nothing, no other thread needs to be woken for each item."""

    def __init__(self, depth: int, flight: BoundedQueue | None) -> None:
        super().__init__(depth)
        self.keeps = True  # False: items end here
        self._flight = flight

    def put(self, item: Any) -> None:
        """Append ``item``, or let it end. Raises Cancelled."""
        if self.keeps:
            super().put(item)
        elif self._cancelled:
            raise Cancelled
        elif self._flight is not None:
            self._flight.get()


class _Failures:
    """The first error of any stage, until it is thrown; later ones become notes on it."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        """``cancel`` tells all stages to end."""
        self._cancel = cancel
        self._lock = threading.Lock()
        self._first: BaseException | None = None
        self._thrown = False

    def add(self, name: str, error: BaseException) -> None:
        """Keep or note ``error``, and cancel all stages."""
        with self._lock:
            if self._first is None:
                error.add_note(f"in stage {name}")
                self._first = error
            elif error is not self._first:
                self._first.add_note(f"then in stage {name}: {type(error).__name__}: {error}")
        self._cancel()

    def throw(self) -> None:
        """Raise the first error, once."""
        if self._first is not None and not self._thrown:
            self._thrown = True
            raise self._first

    def note_on(self, other: BaseException) -> None:
        """Mention the first error on ``other``, which the caller is about to see instead of it."""
        if self._first is not None and not self._thrown:
            self._thrown = True
            notes = ", ".join(self._first.__notes__)
            other.add_note(f"also {notes}: {type(self._first).__name__}: {self._first}")


@dataclass(frozen=True, slots=True)
class _Work:
    """What one thread does: a chain of stages between two queues."""

    stages: Sequence[Stage]
    upstream: BoundedQueue | None
    out: BoundedQueue
    clocks: Sequence[StageClock]
    failures: _Failures
    flight: BoundedQueue | None

    def run(self) -> None:
        chain = Chain(self.stages, self.clocks, self._received())
        try:
            self._pump(iter(chain))
            self.out.close()
        except Cancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever it is, it goes to the caller's thread
            self.failures.add(chain.blame(error), error)
        finally:
            if self.upstream is not None:
                self.upstream.cancel()

    def _pump(self, items: Generator[Any]) -> None:
        with closing(items):
            self._depart()
            for item in items:
                begin = time.perf_counter()
                self.out.put(item)
                del item
                self._depart()
                self.clocks[-1].waiting_room += time.perf_counter() - begin

    def _depart(self) -> None:
        """Wait until one more item may be on its way."""
        if self.flight is not None:
            self.flight.put(None)

    def _received(self) -> Iterator[Any]:
        while self.upstream is not None and (item := self.upstream.get()) is not END:
            yield item
            del item  # not to be held while waiting for the next one


class _Crew:
    """The threads of one Runner, and how they end. Knows nothing of the Runner itself."""

    def __init__(self, threads: Sequence[threading.Thread], cancel: Callable[[], None]) -> None:
        """``cancel`` cancels all queues, and what the first stage waits for."""
        self._threads = threads
        self.cancel = cancel
        self._stop_time: float | None = None  # when the threads were first told to stop

    def start(self) -> None:
        """Start all threads."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Cancel all queues and join all threads, the reader last. Their time runs from the first call."""
        self.cancel()
        first = self._stop_time is None
        self._stop_time = self._stop_time or time.monotonic()
        deadline = self._stop_time + _JOIN_TIMEOUT
        late = [thread for thread in reversed(self._threads[1:]) if not _joined(thread, deadline)]
        reader = self._threads[0]
        if not _joined(reader, self._stop_time + _READER_JOIN_TIMEOUT):
            late.append(reader)
        if late and first:
            names = ", ".join(thread.name for thread in late)
            _log.warning("threads still in a call after being told to stop, which end when it returns: %s", names)


def _joined(thread: threading.Thread, deadline: float) -> bool:
    """Wait for ``thread``; False if it is still running at the deadline."""
    if thread is not threading.current_thread() and thread.is_alive():
        thread.join(max(0.0, deadline - time.monotonic()))
        return not thread.is_alive()
    return True
