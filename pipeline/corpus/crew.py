"""Who does which job when: one job in flight for each worker, workers that die are replaced, late ones are stopped."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from foveate.pipeline.corpus.jobs import Job, Outcome, failed

_TRIES: Final = 2  # of a job whose worker dies: it may have been killed from outside
_FALSE_STARTS: Final = 3  # workers in a row that end before their first job
_GLANCE: Final = 0.5  # seconds between two looks at the clock


class WorkerLostError(Exception):
    """A worker is gone; the message says how it ended."""


class Worker(Protocol):
    """Does one job at a time, somewhere else."""

    def is_ready(self) -> bool:
        """Whether it can be given a job. Raises WorkerLostError."""

    def give(self, job: Job) -> None:
        """Let it begin a job. Raises WorkerLostError."""

    def outcome(self) -> Outcome | None:
        """What became of the job, None while it is at work. Raises WorkerLostError."""

    def dismiss(self) -> None:
        """Let it end, without waiting until it has."""

    def stop(self) -> None:
        """End it at once, whatever it does. Safe to call twice, and after ``dismiss``."""


class Executor(Protocol):
    """Hires workers. Used as a context, at whose end none is left."""

    def room(self) -> int:
        """How many workers there is room for."""

    def hire(self, number: int) -> Worker:
        """A new worker in place ``number``, counted from 0."""

    def wait(self, workers: Sequence[Worker], seconds: float) -> None:
        """Until one of the workers has news, or the time is over."""

    def stop(self, workers: Sequence[Worker]) -> None:
        """End these at once, whatever they do: one that holds a GPU takes a while to end."""


@dataclass(slots=True, eq=False)
class _Place:
    """A worker and what it does."""

    number: int
    worker: Worker
    job: Job | None = None
    began: float = 0.0
    experienced: bool = False  # has done a job


@dataclass(slots=True, eq=False)
class Crew:
    """Does jobs by an executor's workers.

    ``limit`` is in seconds; after that a job's worker is stopped, and the job has failed. ``follow`` is called with
    every outcome, and whether the worker is lost, so that it is not in the ledger yet; what it returns is done as well.
    """

    executor: Executor
    workers: int
    limit: float | None
    follow: Callable[[Job, Outcome, bool], Sequence[Job]]
    _queue: deque[Job] = field(default_factory=deque)
    _dismissed: list[Worker] = field(default_factory=list)
    _lost: dict[str, int] = field(default_factory=dict)  # how often a job lost its worker
    _false_starts: int = 0

    def run(self, jobs: Sequence[Job]) -> None:
        """Do all jobs, in their order. Raises what ``follow`` raises, and WorkerLostError where no worker can begin."""
        self._queue.extend(jobs)
        places: list[_Place] = []
        try:
            while self._queue or any(place.job for place in places):
                self._hire_for_queue(places)
                self._wait(places)
                for number, place in enumerate(places):
                    places[number] = self._look_after(place)
                self._dismiss_idle(places)
        finally:
            self.executor.stop([*self._dismissed, *(place.worker for place in places)])

    def _hire_for_queue(self, places: list[_Place]) -> None:
        """More workers, while there are jobs that no idle one is there for: jobs may follow from others."""
        idle = sum(place.job is None for place in places)
        for _ in range(min(self.workers - len(places), len(self._queue) - idle)):
            places.append(self._hired(len(places)))

    def _hired(self, number: int) -> _Place:
        return _Place(number, self.executor.hire(number))

    def _dismiss_idle(self, places: list[_Place]) -> None:
        """Where no further jobs are in sight, let those go that wait, for what they hold; they end meanwhile."""
        if self._queue or any(place.job is not None and place.job.measures for place in places):
            return
        for place in [place for place in places if place.job is None]:
            place.worker.dismiss()
            self._dismissed.append(place.worker)
            places.remove(place)

    def _wait(self, places: Sequence[_Place]) -> None:
        """Until one has news that matters: with nothing left to give, idle workers are none's concern."""
        self.executor.wait([place.worker for place in places if self._queue or place.job is not None], _GLANCE)

    def _look_after(self, place: _Place) -> _Place:
        """Take what the worker has done, and give it the next job; a new worker where it is gone."""
        try:
            if place.job is not None:
                return self._taken(place, place.job)
            if self._queue and place.worker.is_ready():
                self._give(place)
            return place
        except WorkerLostError as error:
            return self._replaced(place, str(error))

    def _taken(self, place: _Place, job: Job) -> _Place:
        outcome = place.worker.outcome()
        if outcome is not None:
            place.job, place.experienced, self._false_starts = None, True, 0
            self._queue.extend(self.follow(job, outcome, False))
            if self._queue:
                self._give(place)
        elif self.limit is not None and time.monotonic() - place.began > self.limit:
            place.worker.stop()
            self._fail(job, f"{job.title}: not done within {self.limit:g} s (--limit)")
            return self._hired(place.number)
        return place

    def _give(self, place: _Place) -> None:
        place.job, place.began = self._queue.popleft(), time.monotonic()
        place.worker.give(place.job)

    def _replaced(self, place: _Place, reason: str) -> _Place:
        place.worker.stop()
        if place.job is not None:
            self._lose(place.job, reason)
        elif not place.experienced:
            self._false_starts += 1
            if self._false_starts >= _FALSE_STARTS:
                raise WorkerLostError(f"no worker could begin: {reason}")
        return self._hired(place.number)

    def _lose(self, job: Job, reason: str) -> None:
        """Once more, at last, lest it take workers from others; the second time it has failed."""
        self._lost[job.key] = self._lost.get(job.key, 0) + 1
        if self._lost[job.key] < _TRIES:
            self._queue.append(job)
        else:
            self._fail(job, f"{job.title}: {reason}, {_TRIES} times")

    def _fail(self, job: Job, reason: str) -> None:
        self._queue.extend(self.follow(job, failed(job, reason), True))
