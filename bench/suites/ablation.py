"""The ablation: each default against other values of the same setting, by what a reader knows and what it costs."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from foveate.bench.case import Clip, Memory, with_changes
from foveate.bench.cases.quality import method_quality
from foveate.bench.clips.footage import Footage, read_footage
from foveate.bench.peers.methods import ours
from foveate.bench.records.jobs import Job
from foveate.bench.records.writing import clip_record
from foveate.bench.speed.cost import in_turns, on_cpu
from foveate.bench.suites.components import components_job
from foveate.bench.suites.output_cost import output_cost_jobs
from foveate.bench.suites.plan import Plan, read_frames
from foveate.bench.suites.variants import BIAS, GROUPS, Group, Variant, default_of, with_default
from foveate.pipeline.frames import Frame
from foveate.pipeline.settings import Settings


def ablation_jobs(plan: Plan, folder: Path) -> Iterator[Job]:
    """One job for each group of values, clip and memory; ``folder`` takes the files of the linear scorer's weights."""
    for clip in plan.clips:
        held = _Held(clip, plan, folder)
        for memory in plan.memories:
            for group in GROUPS:
                yield Job(f"{group.name}, {clip.name}, {memory}", partial(held.measure, group, memory))
        yield components_job(clip, plan)
    yield from output_cost_jobs(plan)


class _Held:
    """One clip, decoded when it is first needed, and what was measured on it under which settings."""

    def __init__(self, clip: Clip, plan: Plan, folder: Path) -> None:
        self._clip, self._plan, self._folder = clip, plan, folder
        self._footage: Footage | None = None
        self._frames: list[Frame] = []
        self._known: dict[str, dict[str, Any]] = {}

    def measure(self, group: Group, memory: Memory) -> list[dict[str, Any]]:
        """One case for each value: quality, which is the same on every run, and cost, in turns."""
        if self._footage is None:
            self._footage = read_footage(self._clip.path, self._plan.frames)
            self._frames = read_frames(self._clip.path, self._plan.frames)
        base, variants = self._plan.settings, with_default(group, self._plan.settings)
        settings = {each.value: self._settings(group, each, memory) for each in variants}
        costs = in_turns(dict.fromkeys(settings, self._frames), settings, self._plan.repeats)
        about = clip_record(self._clip, len(self._footage.pictures))
        default = default_of(group, base)
        return [
            {
                "name": f"{group.name} {each.value}, {self._clip.name}, {memory}",
                "group": group.name,
                "value": each.value,
                "default": each.value == default,
                "clip": self._clip.name,
                "memory": memory,
                "options": each.options,
                "also": dict(group.also),
                "weights": each.weights,
            }
            | _merged(self._quality(settings[each.value]), costs[each.value])
            | about
            for each in variants
        ]

    def _settings(self, group: Group, variant: Variant, memory: Memory) -> Settings:
        base = with_changes(on_cpu(self._plan.settings), allocation={"memory": memory})
        options = dict(variant.options)
        if variant.weights is not None:
            file = self._folder / f"{variant.value}.toml"
            file.write_text(_toml(variant.weights))
            options["score"] = {**options["score"], "weights": str(file)}
        return with_changes(with_changes(base, **group.also), **options)

    def _quality(self, settings: Settings) -> dict[str, Any]:
        assert self._footage is not None
        key = settings.model_dump_json()
        if key not in self._known:
            options = settings.model_dump(exclude={"budget", "source"})
            self._known[key] = method_quality(partial(ours, options), self._footage, settings.budget)
        return self._known[key]


def _merged(quality: Mapping[str, Any], cost: Mapping[str, Any]) -> dict[str, Any]:
    """Both, and the samples of both."""
    return {**cost, **quality, "samples": {**cost["samples"], **quality["samples"]}}


def _toml(weights: Mapping[str, float]) -> str:
    rows = [f"{name} = {weight!r}" for name, weight in weights.items() if name != BIAS]
    return "\n".join([f"bias = {weights.get(BIAS, 0.0)!r}", "[weights]", *rows]) + "\n"
