"""``foveate bench --suite``: the suites by name, and what they measure if nothing else is said."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from foveate.bench.case import Case, Clip, Memory, cases_of, file_clips, with_changes
from foveate.bench.cases.quality import clip_quality
from foveate.bench.clips.samples import Say, cache_folder, default_clips, sample_clips
from foveate.bench.peers.methods import METHODS
from foveate.bench.records.jobs import Job, run_jobs
from foveate.bench.records.reading import Record
from foveate.bench.records.writing import origin
from foveate.bench.scenes.drift import drift_clip
from foveate.bench.speed.turns import bench_case
from foveate.bench.suites.ablation import ablation_jobs
from foveate.bench.suites.curves import curve_jobs
from foveate.bench.suites.plan import MEMORIES, Plan
from foveate.pipeline.settings import Settings

SuiteName = Literal["quality", "speed", "ablation"]

_FRAMES, _QUICK_FRAMES = 60, 20
_REPEATS, _QUICK_REPEATS = 3, 2
_QUICK_CLIPS: Final = 2


def run_suite(
    name: SuiteName,
    files: Sequence[str],
    settings: Settings,
    memories: Sequence[Memory],
    repeats: int | None,
    frames: int | None,
    quick: bool,
    out: Path | None,
    say: Say,
) -> Record:
    """Measure a suite, or the rest of one that ``out`` holds unfinished; None stands for what the suite does itself.

    Raises as run_jobs does, SourceError without sample clips, SinkError where a clip cannot be made.
    """
    count = frames or (_QUICK_FRAMES if quick else _FRAMES)
    clips = file_clips(files) if files else _clips(name, count, say)
    plan = Plan(
        clips=tuple(clips if files or not quick else clips[:_QUICK_CLIPS]),
        settings=settings,
        memories=tuple(memories) or MEMORIES,
        frames=count,
        repeats=repeats or (_QUICK_REPEATS if quick else _REPEATS),
        quick=quick,
    )
    head = {**origin(), "command": "bench", "suite": name, "quick": quick, "plan": plan.record()}
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        return run_jobs(head, list(_JOBS[name](plan, Path(folder))), out, say)


def _clips(name: SuiteName, frames: int, say: Say) -> list[Clip]:
    if name == "speed":
        return default_clips(cache_folder(), say)
    return [*sample_clips("pedestrians", "bunny"), drift_clip(cache_folder(), frames)]


def _quality_jobs(plan: Plan, folder: Path) -> Iterator[Job]:
    budget = plan.settings.budget
    for clip in plan.clips:
        yield Job(clip.name, partial(clip_quality, clip, METHODS, budget, plan.frames))


def _speed_jobs(plan: Plan, folder: Path) -> Iterator[Job]:
    settings = with_changes(plan.settings, source={"frames": plan.frames if plan.quick else None})
    for case in cases_of(plan.clips, settings, plan.memories):
        yield Job(case.name, partial(_speed, case, plan.repeats))
    yield from curve_jobs(plan)


def _speed(case: Case, repeats: int) -> list[dict[str, Any]]:
    return [bench_case(case, repeats)]


_JOBS: Final[Mapping[SuiteName, Callable[[Plan, Path], Iterator[Job]]]] = {
    "quality": _quality_jobs,
    "speed": _speed_jobs,
    "ablation": ablation_jobs,
}
