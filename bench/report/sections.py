"""Sections of a report by kind of record: charts, and a table of all figures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from foveate.bench.records.metrics import METRICS, number
from foveate.bench.records.reading import Case, Record, value_at
from foveate.bench.report.charts import Axis, Bar, Point, bars, lines, stacks
from foveate.bench.suites.choice import Choice, choices

_PSNR: Final = "psnr_luma"
_OVER_TIME: Final = 6  # methods whose frames are drawn
_OURS: Final = "Foveate"
_AXES: Final[Mapping[str, tuple[str, bool]]] = {  # of the curves: what is along, and whether by logarithms
    "frame size": ("megapixels of a frame", True),
    "budget": ("tokens a frame, at most", True),
    "share changed": ("share of tiles that change from frame to frame", False),
    "queries": ("queries", False),
    "streams": ("streams at once in one process", False),
}


def sections(record: Record) -> Iterator[str]:
    """The parts of one record's report, as HTML."""
    cases: Sequence[Case] = record["cases"]
    yield from _speeds([case for case in cases if "decode_fps" in case and "pipeline_fps" in case])
    yield from _curves([case for case in cases if "curve" in case])
    yield from _quality([case for case in cases if "method" in case and _PSNR in case])
    yield from _ablation([case for case in cases if "group" in case])
    if cases:
        yield _details("All figures", _figures(cases))
    for red in record.get("red", ()):
        yield f'<p class="bad">{escape(str(red.get("name")))}: no figures: {escape(str(red.get("reason")))}</p>'


def _speeds(cases: Sequence[Case]) -> Iterator[str]:
    if not cases:
        return
    yield "<h3>Frames per second, and bare decoding of the same file (grey)</h3>"
    rows = []
    for case in cases:
        rows.append(Bar(case["name"], case["pipeline_fps"], *_spread(_rates(case, "pipeline"))))
        rows.append(Bar(f"decoding: {case['ratio']:.2f}", case["decode_fps"], *_spread(_rates(case, "decode")), "pale"))
    yield bars(rows, "fps", "{:.0f}")
    staged = [case for case in cases if case.get("stages")]
    if staged:
        yield "<h3>Where the time goes</h3>"
        yield '<p class="hint">Busy milliseconds a frame; stages run at once, as far as there are processors.</p>'
        parts = [stage["name"] for stage in staged[0]["stages"]]
        yield stacks([(case["name"], [stage["busy_ms"] for stage in case["stages"]]) for case in staged], parts, "ms")


def _rates(case: Case, side: str) -> list[float]:
    seconds = value_at(case, f"samples.{side}_seconds") or ()
    return [case["frames"] / each for each in seconds if "frames" in case]


def _curves(cases: Sequence[Case]) -> Iterator[str]:
    for curve in dict.fromkeys(case["curve"] for case in cases):
        points = [case for case in cases if case["curve"] == curve]
        label, log = _AXES.get(curve, (curve, False))
        yield f"<h3>Cost by {escape(curve)}</h3>"
        yield _lines_of(points, "cpu_ms", Axis(label, log), Axis("CPU ms a frame", zero=True))
        if any("pipeline_fps" in case for case in points):
            yield _lines_of(points, "pipeline_fps", Axis(label, log), Axis("frames per second, all", zero=True))


def _lines_of(cases: Sequence[Case], key: str, x: Axis, y: Axis) -> str:
    samples = "fps" if key == "pipeline_fps" else key
    series = [
        (
            f"{memory} memory",
            [
                Point(case["at"], case[key], *_spread(value_at(case, f"samples.{samples}") or ()))
                for case in cases
                if case["memory"] == memory
            ],
        )
        for memory in dict.fromkeys(case["memory"] for case in cases)
    ]
    return lines(series, x, y)


def _quality(cases: Sequence[Case]) -> Iterator[str]:
    for clip in dict.fromkeys(case["clip"] for case in cases):
        own = sorted((case for case in cases if case["clip"] == clip), key=lambda case: -case[_PSNR])
        yield f"<h3>The picture that the tokens make: {escape(clip)}</h3>"
        yield '<p class="hint">PSNR of luma, mean over the frames; the whisker ends at the worst frame.</p>'
        low = min(min(case[_PSNR], case.get("psnr_luma_least", case[_PSNR])) for case in own)
        rows = [
            Bar(
                case["method"],
                case[_PSNR],
                case.get("psnr_luma_least"),
                case[_PSNR] if "psnr_luma_least" in case else None,
                "c0" if case["method"].startswith(_OURS) else "pale",
            )
            for case in own
        ]
        yield bars(rows, "dB", "{:.1f}", least=float(int(low - 1)))
        timed = [case for case in own if value_at(case, "samples.psnr_luma")][:_OVER_TIME]
        series = [
            (case["method"], [Point(frame, value) for frame, value in enumerate(case["samples"]["psnr_luma"])])
            for case in timed
        ]
        if series:
            yield f'<p class="hint">Frame by frame, the {len(series)} best.</p>'
            yield lines(series, Axis("frame"), Axis("PSNR, dB"))


def _ablation(cases: Sequence[Case]) -> Iterator[str]:
    for choice in choices(cases):
        yield f"<h3>{escape(choice.group)}</h3>"
        yield f'<p class="hint">{escape(choice.sentence)}</p>'
        if choice.gains:
            yield '<p class="hint">PSNR against the default, mean over clips and memories.</p>'
            yield bars(_bars(choice, choice.gains), "dB", "{:+.2f}")
        if choice.agreements:
            yield '<p class="hint">Correlation with the exact likeness.</p>'
            yield bars(_bars(choice, choice.agreements), "", "{:.3f}")
        if choice.costs:
            yield '<p class="hint">CPU time of a frame, against the default.</p>'
            yield bars(_bars(choice, choice.costs), "", "{:.2f}")
        own = [case for case in cases if case["group"] == choice.group]
        yield _details("By clip and memory", _figures(own, ("value", "clip", "memory")))


def _bars(choice: Choice, values: Mapping[str, float]) -> list[Bar]:
    def label(value: str) -> str:
        return f"{value} (default)" if value == choice.default else value

    return [Bar(label(name), value, kind="c0" if name == choice.best else "pale") for name, value in values.items()]


def _figures(cases: Sequence[Case], names: Sequence[str] = ("name",)) -> str:
    """A table with a row for each case, and a column for each figure that any of them has."""
    held = [metric for metric in METRICS if any(number(case, metric) is not None for case in cases)]
    more = [key for key in _MORE if any(key in case for case in cases)]
    head = [*names, *(f"{metric.label}{f', {metric.unit}' if metric.unit else ''}" for metric in held)]
    rows = []
    for case in cases:
        figures = [number(case, metric) for metric in held] + [case.get(key) for key in more]
        cells = [str(case.get(name) or "") for name in names] + [_text(figure) for figure in figures]
        rows.append(f"<tr{' class=mark' if case.get('default') else ''}>{_cells('td', cells)}</tr>")
    top = _cells("th", [*head, *(_MORE[key] for key in more)])
    return f'<div class="scroll"><table><tr>{top}</tr>{"".join(rows)}</table></div>'


_MORE: Final[Mapping[str, str]] = {
    "tokens_per_frame": "tokens a frame",
    "changed": "tiles changed",
    "recomputed": "cells recomputed",
    "churn": "tokens unlike the frame before's",
    "top_agreement": "top tenth agreeing",
}


def _cells(kind: str, values: Iterable[str]) -> str:
    return "".join(f"<{kind}>{escape(value)}</{kind}>" for value in values)


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.4g}"


def _details(name: str, content: str) -> str:
    return f"<details><summary>{escape(name)}</summary>{content}</details>"


def _spread(samples: Sequence[float]) -> tuple[float | None, float | None]:
    """The least and the greatest of several samples."""
    return (min(samples), max(samples)) if len(samples) > 1 else (None, None)
