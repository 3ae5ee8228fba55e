"""Tables of a page that are made from a whole record, as Markdown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from foveate.bench.records.reading import Case, value_at
from foveate.bench.records.table import markdown
from foveate.bench.suites.choice import choices_table

Record = dict[str, Any]

_QUALITY: Final = {  # by the heading of the column
    "mean": "psnr_luma",
    "pooled": "psnr_luma_pooled",
    "worst frame": "psnr_luma_least",
    "constant rate": "constant_rate.psnr_luma",
}
_SHOWN: Final = {  # what a page calls the methods, with its footnotes
    "downscale": "whole frame, downscaled",
    "uniform": "uniform cells",
    "random": "random cells",
    "saliency": "saliency alone",
    "EVS": "EVS †",
    "DTD": "DTD †",
    "RLT": "RLT † *",
    "VidCom2": "VidCom2 †",
    "Foveate, frame": "Foveate, frame memory",
    "Foveate, stream": "Foveate, stream memory",
    "Foveate, frame, score on": "Foveate, frame memory, score on",
    "Foveate, stream, score on": "Foveate, stream memory, score on",
}


def speeds_table(record: Record) -> str:
    """Frames per second of each clip and memory, beside bare decoding."""
    heading = ("clip", "memory", "size", "decoding, fps", "Foveate, fps", "ratio")
    return markdown(heading, [_speeds(case) for case in record["cases"]])


def _speeds(case: Case) -> tuple[str, ...]:
    size = f"{case['width']}x{case['height']}"
    speeds = (f"{case['decode_fps']:.0f}", f"{case['pipeline_fps']:.0f}", f"{case['ratio']:.2f}")
    return (*case["name"].split(", "), size, *speeds)


def quality_table(record: Record) -> str:
    """A table for each clip: four figures of PSNR for each method; the best of each is bold."""
    clips = dict.fromkeys(case["clip"] for case in record["cases"])
    return "\n\n".join(_quality(clip, [case for case in record["cases"] if case["clip"] == clip]) for clip in clips)


def _quality(clip: str, cases: Sequence[Case]) -> str:
    columns = [[f"{value_at(case, key):.1f}" for case in cases] for key in _QUALITY.values()]
    marked = [[_bold(figure, max(column, key=float)) for figure in column] for column in columns]
    names = [_SHOWN.get(case["method"], case["method"]) for case in cases]
    return markdown((clip, *_QUALITY), list(zip(names, *marked, strict=True)))


def _bold(figure: str, best: str) -> str:
    return f"**{figure}**" if figure == best else figure


def _choices(record: Record) -> str:
    return choices_table([case for case in record["cases"] if "group" in case])


TABLES: Final[Mapping[str, Callable[[Record], str]]] = {
    "ablation": _choices,
    "quality": quality_table,
    "speeds": speeds_table,
}
"""What stands between ``<!-- NAME RECORD -->`` and ``<!-- /NAME -->``, by NAME."""
