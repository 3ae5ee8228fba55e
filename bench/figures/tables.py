"""Tables of a page that are made from a whole record, as Markdown."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from foveate.bench.records.reading import Case
from foveate.bench.records.table import markdown
from foveate.bench.suites.choice import choices_table

Record = dict[str, Any]

_QUALITY: Final = ("psnr_luma", "psnr_luma_pooled", "psnr_luma_least", "constant_rate")
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
    """PSNR of each method and clip: mean / pooled / worst frame / constant rate; the best of each is bold."""
    cases = {(case["method"], case["clip"]): _figures(case) for case in record["cases"]}
    clips = list(dict.fromkeys(clip for _, clip in cases))
    best = {clip: [max(column, key=float) for column in zip(*_of(cases, clip), strict=True)] for clip in clips}
    rows = [
        (_SHOWN.get(method, method), *(_bold(cases[method, clip], best[clip]) for clip in clips))
        for method in dict.fromkeys(method for method, _ in cases)
    ]
    return markdown(("method", *clips), rows)


def _figures(case: Case) -> list[str]:
    mean, pooled, least, constant = _QUALITY
    return [f"{figure:.1f}" for figure in (case[mean], case[pooled], case[least], case[constant][mean])]


def _of(cases: Mapping[tuple[str, str], list[str]], clip: str) -> list[list[str]]:
    return [figures for (_, each), figures in cases.items() if each == clip]


def _bold(figures: list[str], best: list[str]) -> str:
    pairs = zip(figures, best, strict=True)
    return " / ".join(f"**{figure}**" if figure == most else figure for figure, most in pairs)


def _choices(record: Record) -> str:
    return choices_table([case for case in record["cases"] if "group" in case])


TABLES: Final[Mapping[str, Callable[[Record], str]]] = {
    "ablation": _choices,
    "quality": quality_table,
    "speeds": speeds_table,
}
"""What stands between ``<!-- NAME RECORD -->`` and ``<!-- /NAME -->``, by NAME."""
