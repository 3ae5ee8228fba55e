"""The report's text: summary, charts and settings as HTML."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import Header
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks.header import budget_of, version
from foveate.pipeline.sinks.report.figures import Figures

CLIP: Final = "@clip@"
"""The placeholder for the video in base64."""

_TEMPLATE: Final = Path(__file__).with_name("page.html")
_POINTS: Final = 1000  # of a line: more could not be distinguished


def page(header: Header, figures: Figures, shown: int) -> str:
    """The whole page, with CLIP once where the video of the first ``shown`` frames goes."""
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in header.notes)
    return Template(_TEMPLATE.read_text("utf-8")).substitute(
        title=escape(header.source),
        version=escape(version()),
        notes=notes,
        summary=_summary(header, figures),
        clip=_clip(figures, shown),
        charts=_charts(figures),
        asked=_asked(header.config, figures),
        settings="".join(_settings(header.config)),
        span=f"{figures.span or 1.0:.6f}",
    )


def _summary(header: Header, figures: Figures) -> str:
    allocation = header.config.get("allocation", {})
    known = {
        "Size": f"{header.width}x{header.height}",
        "Frames": f"{len(figures):,}",
        "Time": f"{figures.span:.1f} s",
        "Tokens": f"{sum(figures.tokens):,.0f}",
        "Tokens a frame": f"{_mean(figures.tokens):.1f} of {_budget(header)}",
        "PSNR, mean": f"{_mean(figures.psnr):.1f} dB",
        "PSNR, worst": f"{min(figures.psnr, default=0):.1f} dB",
        "Keyframes": f"{len(figures.keyframes):,}",
        "Tiles changed, mean": f"{_mean(figures.changed):.1%}",
        "Memory": str(allocation.get("memory", "?")),
        "Engine": str(header.config.get("engine", "?")),
    }
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in known.items())


def _budget(header: Header) -> str:
    budget, average = budget_of(header)
    return f"{budget or '?'}{' on average' if average else ''}"


def _clip(figures: Figures, shown: int) -> str:
    if not len(figures):
        return f"<p>No frame was read.</p><!--{CLIP}-->"
    cut = f"<p>The video holds the first {shown:,} of {len(figures):,} frames.</p>" if len(figures) > shown else ""
    return f'<video controls muted loop src="data:video/mp4;base64,{CLIP}"></video>{cut}'


def _charts(figures: Figures) -> str:
    lines = (
        ("Tokens of each frame", figures.tokens, max(figures.tokens, default=1), "{:.0f}"),
        ("PSNR of what the model sees, in dB (100: identical to the frame)", figures.psnr, None, "{:.1f}"),
        ("Share of 32x32 tiles that changed", figures.changed, 1.0, "{:.0%}"),
        *([("Debt: tokens ahead of the average", figures.debt, None, "{:.0f}")] if figures.debt else []),
    )
    return "".join(_chart(name, values, figures, top, form) for name, values, top, form in lines)


def _chart(name: str, values: array[float], figures: Figures, top: float | None, form: str) -> str:
    """One line over 1000 x 100 units. ``top`` None: from the least to the most that there is."""
    least, most = (min(values, default=0), max(values, default=1)) if top is None else (0.0, top)
    scale = (most - least) or 1.0
    span = figures.span or 1.0
    points = _thinned(np.array(figures.times), np.array(values))
    path = " ".join(f"{1000 * time / span:.1f},{98 - 96 * (value - least) / scale:.1f}" for time, value in points)
    ticks = " ".join(f"M{1000 * time / span:.1f},0v8" for time in figures.keyframes[:_POINTS])
    return (
        f"<figure><figcaption>{escape(name)}: from {form.format(least)} to {form.format(most)}</figcaption>"
        f'<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label="{escape(name)}">'
        f'<path class="keyframes" d="{ticks}"/><path d="{"M" + path if path else ""}"/>'
        f'<line class="now" x1="0" x2="0" y1="0" y2="100"/></svg></figure>'
    )


def _thinned(times: NDArray[np.float64], values: NDArray[np.float64]) -> Iterator[tuple[float, float]]:
    """The line's points; if there are many, the least and the most of each stretch, so that no peak is lost."""
    stretches = max(1, -(-len(values) // (_POINTS // 2))) if len(values) > _POINTS else 1
    for start in range(0, len(values), stretches):
        part = values[start : start + stretches]
        for at in sorted({int(part.argmin()), int(part.argmax())}):
            yield float(times[start + at]), float(part[at])


def _asked(config: Mapping[str, Any], figures: Figures) -> str:
    asked = [*config.get("query", ()), *(f"picture {name}" for name in config.get("query_image", ()))]
    lines = [", ".join(asked) or "None."]
    lines += [f"from {time:.3f} s on: {', '.join(query) or 'nothing'}" for time, query in figures.queries if time > 0]
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _settings(config: Mapping[str, Any]) -> Iterator[str]:
    defaults = dict(_flat(Settings().model_dump(mode="json")))
    for key, value in _flat(config):
        mark = ' class="changed"' if key in defaults and defaults[key] != value else ""
        yield f"<tr{mark}><td>{escape(key)}</td><td>{escape(_text(value))}</td></tr>"


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)


def _mean(values: array[float]) -> float:
    return sum(values) / len(values) if values else 0.0
