"""Who does which job when, with workers that need no process."""

from collections.abc import Sequence

import pytest

from foveate.pipeline.corpus.crew import Crew, Worker, WorkerLostError
from foveate.pipeline.corpus.jobs import Job, Outcome


def job(name: str) -> Job:
    return Job(name, f"/{name}", name)


def done(each: Job) -> Outcome:
    return Outcome(each.key, each.video, each.segment, "done")


class Staged:
    """A worker that does each job at the second look, but for those in ``ends``, which it does not survive."""

    def __init__(self, ends: set[str], starts: bool = True) -> None:
        self.ends, self.starts, self.stopped = ends, starts, False
        self.present: Job | None = None
        self.looks = 0

    def is_ready(self) -> bool:
        if not self.starts:
            raise WorkerLostError("it ended with 1")
        return True

    def give(self, job: Job) -> None:
        assert self.present is None
        assert not self.stopped
        self.present, self.looks = job, 0

    def outcome(self) -> Outcome | None:
        assert self.present is not None
        if self.present.video in self.ends:
            raise WorkerLostError("it was ended")
        self.looks += 1
        if self.looks < 2 or self.present.video == "hangs":
            return None
        finished, self.present = done(self.present), None
        return finished

    def dismiss(self) -> None:
        assert self.present is None or self.present.video == "hangs"
        self.stopped = True

    def stop(self) -> None:
        self.stopped = True


class Stage:
    """An Executor whose workers are Staged."""

    def __init__(self, ends: Sequence[str] = (), starts: bool = True) -> None:
        self.hired: list[Staged] = []
        self.ends, self.starts = set(ends), starts
        self.most = 0  # jobs under way at the same time

    def room(self) -> int:
        return 2

    def hire(self, number: int) -> Staged:
        self.hired.append(Staged(self.ends, self.starts))
        return self.hired[-1]

    def wait(self, workers: Sequence[object], seconds: float) -> None:
        self.most = max(self.most, sum(each.present is not None and not each.stopped for each in self.hired))

    def stop(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.stop()


class Progress:
    def __init__(self, more: dict[str, list[Job]] | None = None) -> None:
        self.more = more or {}
        self.over: list[tuple[str, str, str]] = []
        self.unkept: list[str] = []

    def __call__(self, each: Job, outcome: Outcome, unkept: bool) -> list[Job]:
        self.over.append((each.video, outcome.state, outcome.reason))
        self.unkept += [each.video] * unkept
        return self.more.get(each.video, [])


def run(stage: Stage, jobs: Sequence[Job], progress: Progress, workers: int = 2, limit: float | None = None) -> None:
    Crew(stage, workers, limit, progress).run(jobs)
    assert all(worker.stopped for worker in stage.hired)


def test_every_job_is_done_once_in_order() -> None:
    stage, progress = Stage(), Progress()
    run(stage, [job(str(number)) for number in range(7)], progress)
    assert [name for name, *_ in progress.over] == [str(number) for number in range(7)]
    assert (len(stage.hired), stage.most) == (2, 2)


def test_no_more_workers_than_jobs() -> None:
    stage = Stage()
    run(stage, [job("a"), job("b")], Progress(), workers=50)
    assert len(stage.hired) == 2


def test_workers_come_for_jobs_that_follow() -> None:
    stage, progress = Stage(), Progress({"long": [job(f"part {number}") for number in range(6)]})
    run(stage, [job("long")], progress, workers=3)
    assert (len(progress.over), len(stage.hired), stage.most) == (7, 3, 3)


def test_who_has_nothing_left_to_do_is_let_go_while_others_work() -> None:
    stage, idle = Stage(), list[int]()
    crew = Crew(stage, 3, 5.0, Progress())

    def wait(workers: Sequence[object], seconds: float) -> None:
        idle.append(sum(each.present is None and not each.stopped for each in stage.hired))
        if idle[-10:] == [0] * 10:  # all but the one that hangs have been let go
            next(each for each in stage.hired if each.present).present = job("done after all")

    stage.wait = wait  # type: ignore[method-assign]
    crew.run([job("hangs"), job("a"), job("b")])
    assert idle[-1] == 0
    assert len(stage.hired) == 3


def test_a_job_that_ends_its_worker_has_failed_the_second_time() -> None:
    stage, progress = Stage(ends=["bad"]), Progress()
    run(stage, [job("bad"), job("good"), job("better")], progress, workers=1)
    assert progress.over == [
        ("good", "done", ""),
        ("better", "done", ""),
        ("bad", "failed", "bad: it was ended, 2 times"),
    ]
    assert progress.unkept == ["bad"]


def test_a_job_that_takes_too_long_is_stopped() -> None:
    stage, progress = Stage(), Progress()
    run(stage, [job("hangs"), job("good")], progress, workers=1, limit=0.0)
    assert progress.over[0] == ("hangs", "failed", "hangs: not done within 0 s (--limit)")
    assert stage.hired[0].stopped


def test_workers_that_never_begin_end_the_run() -> None:
    stage = Stage(starts=False)
    with pytest.raises(WorkerLostError, match="no worker could begin: it ended with 1"):
        run(stage, [job("a"), job("b")], Progress())
    assert all(worker.stopped for worker in stage.hired)
    assert len(stage.hired) <= 5


def test_what_follow_raises_ends_the_run() -> None:
    def follow(each: Job, outcome: Outcome, unkept: bool) -> list[Job]:
        raise OSError("full")

    stage = Stage()
    with pytest.raises(OSError, match="full"):
        Crew(stage, 2, None, follow).run([job("a"), job("b"), job("c")])
    assert all(worker.stopped for worker in stage.hired)
