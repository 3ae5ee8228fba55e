"""Processor time of the CPU engine, on frames that are decoded already."""

import gc
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from foveate.bench.case import RedCheckError
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.engine import open_engine
from foveate.pipeline.frames import Frame
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings


def on_cpu(settings: Settings) -> Settings:
    """The same, by the CPU engine."""
    return settings.model_copy(update={"engine": "cpu"})


def select(frames: Sequence[Frame], settings: Settings) -> tuple[list[Selection], list[float]]:
    """Selections of ``frames``, and milliseconds of processor time of each, frame to tokens.

    One thread drives all stages, and its time is what counts: other programs on the machine are not in it.
    Raises RedCheckError where a frame is lost or has more tokens than the budget.
    """
    engine = open_engine(plan_stream(settings), Feedback())
    steps = engine.cascade(engine.pyramid(engine.upload(iter(frames))))
    selections, marks = [], [time.thread_time()]
    for item in steps:
        marks.append(time.thread_time())
        selections.append(item.selection)
    if len(selections) != len(frames):
        raise RedCheckError(f"{len(frames)} frames gave {len(selections)} selections")
    most = max(map(len, selections), default=0)
    if most > settings.budget:
        raise RedCheckError(f"a frame has {most} tokens, the budget is {settings.budget}")
    return selections, [1000 * (end - start) for start, end in pairwise(marks)]


def in_turns(
    frames: Mapping[str, Sequence[Frame]], settings: Mapping[str, Settings], repeats: int
) -> dict[str, dict[str, Any]]:
    """The costs of variants, by their names, measured in turns: ``cpu_ms`` of a frame, and its samples, one per turn.

    It is the least of the turns: other programs on the machine only ever add to it. The first frame of each run, which
    also pays for the memory it takes, does not count. ``tokens_per_frame``, ``changed`` and ``recomputed`` are means
    over the others, and so is ``churn``: the share of a frame's tokens that the frame before does not have.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in settings}
    samples: dict[str, list[float]] = {name: [] for name in settings}
    for _ in range(repeats):
        for name, each in settings.items():
            gc.collect()
            selections, times = select(frames[name], each)
            samples[name].append(fmean(times[1:] or times))
            found[name] = _counts(selections)
    return {
        name: {"cpu_ms": min(values), **found[name], "samples": {"cpu_ms": values}} for name, values in samples.items()
    }


def _counts(selections: Sequence[Selection]) -> dict[str, float]:
    later, tokens = selections[1:] or selections, [_tokens(selection) for selection in selections]
    return {
        "tokens_per_frame": fmean(map(len, later)),
        "changed": fmean(selection.changed for selection in later),
        "recomputed": fmean(selection.recomputed for selection in later),
        "churn": fmean([len(now - before) / max(1, len(now)) for before, now in pairwise(tokens)] or [1.0]),
    }


def _tokens(selection: Selection) -> set[tuple[int, int, int]]:
    return set(zip(selection.lod.tolist(), selection.x.tolist(), selection.y.tolist(), strict=True))
