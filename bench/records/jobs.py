"""Benchmarks as jobs: each measures a few cases that belong together, and is saved as soon as it is done."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from av.error import FFmpegError

from foveate.bench.case import RedCheckError
from foveate.bench.records.reading import Record, read_record
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, origin, record_text, write_text
from foveate.pipeline.errors import FoveateError, SettingsError, SourceError
from foveate.pipeline.sinks.destination import write_whole

_SAME = ("commit", "dirty", "machine", "versions", "suite", "quick", "plan")
"""Fields in which an unfinished record must agree with the run that resumes it."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """A piece of work. ``run`` gives cases with names of their own; it raises RedCheckError, FoveateError, FFmpegError.

    Cases whose times are compared are one job, so that they can be measured in turns.
    """

    name: str
    run: Callable[[], Sequence[Mapping[str, Any]]]


def run_benchmark(
    command: str, plan: Mapping[str, Any], jobs: Sequence[Job], out: str | None, table: Callable[[Record], str]
) -> None:
    """Run the jobs of a benchmark of its own into ``out``, print its ``table``, and without ``out`` print the record.

    Raises as run_jobs does.
    """
    head = {**origin(), "command": command, "suite": command, "quick": False, "plan": plan}
    record = run_jobs(head, jobs, None if out is None else Path(out), say)
    say(table(record))
    if out is None:
        hand_out(record, None)


def run_jobs(head: Mapping[str, Any], jobs: Sequence[Job], out: Path | None, say: Say) -> Record:
    """Run what ``out`` does not hold yet, and write the record there after each job, whole or not at all.

    ``head`` has what the record says before its cases. Without ``out`` the record is only returned. A job that fails
    stands under ``red``, with the reason. Raises SettingsError where ``out`` holds something else, SinkError.
    """
    record = _begun(head, out)
    todo = [job for job in jobs if job.name not in record["done"]]
    if len(todo) < len(jobs):
        say(f"{len(jobs) - len(todo)} of {len(jobs)} jobs are in {out} already")
    began = time.monotonic()
    try:
        for place, job in enumerate(todo):
            left = (time.monotonic() - began) / place * (len(todo) - place) if place else None
            say(f"{len(jobs) - len(todo) + place + 1}/{len(jobs)} {job.name}{_left(left)}")
            _run(job, record)
            _keep(record, out)
    except KeyboardInterrupt:
        if out is not None and record["done"]:
            say(f"{len(record['done'])} of {len(jobs)} jobs are in {out}; the same command goes on there")
        raise
    record["complete"] = True
    _keep(record, out)
    return record


def _begun(head: Mapping[str, Any], out: Path | None) -> Record:
    """The unfinished record in ``out``, or a new one. One that is finished is measured anew."""
    fresh: Record = {**head, "complete": False, "done": [], "cases": [], "red": []}
    if out is None or not out.exists() or not out.stat().st_size:
        return fresh
    try:
        held = read_record(out)
    except SourceError as error:
        raise SettingsError(f"--out: {error}; name another file") from None
    if held.get("complete", True):
        return fresh
    other = [key for key in _SAME if held.get(key) != head[key]]
    if other:
        raise SettingsError(
            f"--out: {out} holds an unfinished record with another {', '.join(other)}; remove it, or name another file"
        )
    return {**held, "red": []}


def _run(job: Job, record: Record) -> None:
    try:
        record["cases"] += [dict(case) for case in job.run()]
        record["done"].append(job.name)
    except (RedCheckError, FoveateError) as error:
        record["red"].append({"name": job.name, "reason": str(error)})
    except FFmpegError as error:
        record["red"].append({"name": job.name, "reason": error.strerror})


def _keep(record: Record, out: Path | None) -> None:
    if out is not None:
        write_whole(out, lambda part: write_text(part, record_text(record)))


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"  (about {seconds / 60:.0f} min left)" if seconds >= 90 else f"  (about {seconds:.0f} s left)"
