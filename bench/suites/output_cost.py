"""The cost of computing and returning more channels: the first 8, 16, 24 and 40 of the default layout."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from foveate.bench.case import Clip
from foveate.bench.records.jobs import Job
from foveate.bench.records.writing import clip_record
from foveate.bench.speed.cost import in_turns, on_cpu
from foveate.bench.suites.plan import Plan, read_frames
from foveate.pipeline.channels import CHANNELS
from foveate.pipeline.layouts import load_layout

GROUP: Final = "channels returned"
_COUNTS: Final = (0, 8, 16, 24, 40)  # 0: only what the default score reads


def output_cost_jobs(plan: Plan) -> Iterator[Job]:
    """One job for each clip: with frame memory, since the channels are the same with both."""
    for clip in plan.clips:
        yield Job(f"{GROUP}, {clip.name}", partial(_measure, clip, plan))


def layouts() -> dict[str, tuple[str, ...]]:
    """The channels of each variant; 13 are those of the layout spec13, the others the first ones of the table."""
    order = tuple(channel.name for channel in CHANNELS)
    firsts = {str(count): order[:count] for count in _COUNTS}
    return {**firsts, "13 (spec13)": tuple(load_layout("spec13"))}


def _measure(clip: Clip, plan: Plan) -> list[dict[str, Any]]:
    frames = read_frames(clip.path, plan.frames)
    variants = layouts()
    base = on_cpu(plan.settings)
    settings = {name: base.model_copy(update={"maps": channels}) for name, channels in variants.items()}
    costs = in_turns(dict.fromkeys(variants, frames), settings, plan.repeats)
    about = clip_record(clip, len(frames))
    return [
        {"name": f"{GROUP} {value}, {clip.name}", "group": GROUP, "value": value, "default": value == "0"}
        | {"clip": clip.name, "memory": base.allocation.memory}
        | cost
        | about
        for value, cost in costs.items()
    ]
