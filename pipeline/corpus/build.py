"""Makes a corpus: what is missing of it is done, by this process, by others, or by a cluster."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, Protocol

from foveate.pipeline.corpus.crew import Crew, Executor, WorkerLostError
from foveate.pipeline.corpus.fork_server import ForkServer
from foveate.pipeline.corpus.jobs import ENDING, Job, Outcome, Task, jobs_of, segments_of, shard_of
from foveate.pipeline.corpus.ledger import Ledger
from foveate.pipeline.corpus.names import Input
from foveate.pipeline.corpus.processes import ProcessExecutor
from foveate.pipeline.corpus.store import open_store
from foveate.pipeline.errors import EngineError
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.sinks.parquet import require_pyarrow

WHOLE: Final = (1, 1)
_ERRORS: Final = {error.__name__: error for error in ENDING}


@dataclass(frozen=True, slots=True)
class Manner:
    """How jobs are done: nothing of it changes what they give."""

    workers: int | None = None  # None: as many as there is room for; 0: this process does the jobs, one after the other
    limit: float | None = None  # seconds that a job may take
    retry: bool = False  # do what failed before once more
    shard: tuple[int, int] = WHOLE  # (i, n): the i-th of n parts of all jobs, from 1
    ray: str | None = None  # the address of a Ray cluster
    gpus: float = 0.0  # of a GPU, for each worker of the cluster
    debug: bool = False  # workers write to standard error


class Follower(Protocol):
    """Receives the progress of a run."""

    def begin(self, jobs: int, done: int) -> None:
        """So many jobs are to be done; others are done already."""

    def add(self, outcome: Outcome, jobs: int) -> None:
        """One more is over; its outcome has made so many jobs necessary."""


def build(
    inputs: Sequence[Input], task: Task, manner: Manner, follow: Follower, server: ForkServer | None = None
) -> list[Outcome]:
    """Do all jobs that are missing, and write the tables. Returns the jobs of the whole corpus that failed.

    ``server``: one that was started before, to save time; processes of this machine are forked by it.

    Raises SettingsError and EngineError before any video is opened, SinkError where the store cannot be written.
    """
    plan_stream(task.settings)
    if task.kind == "parquet":
        require_pyarrow(task.store)
    store = open_store(task.store)
    ledger = Ledger(store)
    with _executor(task, manner, server) as executor:
        store.prepare()
        ledger.describe(task)
        building = Building(task, ledger, manner.retry, follow)
        try:
            jobs = building.begin(shard_of(jobs_of(inputs, task.segment), *manner.shard))
            _work(jobs, building, executor, task, manner)
            return ledger.write_tables()
        finally:
            store.sweep()


class Building:
    """Keeps an account of the jobs of one run."""

    def __init__(self, task: Task, ledger: Ledger, retry: bool, follow: Follower) -> None:
        self._ledger, self._follow = ledger, follow
        self._splits = task.segment is not None
        self._over = set(ledger.done()) | (set() if retry else set(ledger.failed()))

    def begin(self, jobs: Sequence[Job]) -> list[Job]:
        """Those of ``jobs`` that are missing; of videos whose segments are counted, the segments."""
        known = self._ledger.segments() if self._splits else {}
        wanted: list[Job] = []
        for job in jobs:
            wanted += segments_of(job, known[job.key]) if job.key in known else [job]
        missing = [job for job in wanted if job.key not in self._over]
        self._follow.begin(len(missing), len(wanted) - len(missing))
        return missing

    def follow(self, job: Job, outcome: Outcome, unkept: bool = False) -> list[Job]:
        """Tell of an outcome, which is ``unkept`` where the ledger does not know of it; returns the jobs that follow.

        Raises what has to end the run.
        """
        if unkept:
            self._ledger.keep(outcome)
        if outcome.state == "stop":
            raise _ERRORS[outcome.error](outcome.reason)
        more = [] if outcome.segments is None else segments_of(job, outcome.segments)
        more = [each for each in more if each.key not in self._over]
        self._follow.add(outcome, len(more))
        return more


def _executor(task: Task, manner: Manner, server: ForkServer | None) -> AbstractContextManager[Executor | None]:
    if manner.ray is None and manner.workers != 0:
        return ProcessExecutor(task, manner.debug, server)
    if server is not None:
        server.close()  # nothing is to be forked
    if manner.ray is None:
        return nullcontext()
    from foveate.pipeline.corpus.ray_actors import RayExecutor

    return RayExecutor(task, manner.ray, manner.gpus)


def _work(jobs: Sequence[Job], building: Building, executor: Executor | None, task: Task, manner: Manner) -> None:
    if executor is None:
        from foveate.pipeline.corpus.work import Workplace  # which imports all that a stream needs

        _work_here(deque(jobs), building, Workplace(task).attempt)
        return
    workers = executor.room() if manner.workers is None else manner.workers
    try:
        Crew(executor, workers, manner.limit, building.follow).run(jobs)
    except WorkerLostError as error:
        raise EngineError(str(error)) from None


def _work_here(jobs: deque[Job], building: Building, attempt: Callable[[Job], Outcome]) -> None:
    while jobs:
        job = jobs.popleft()
        jobs += building.follow(job, attempt(job))
