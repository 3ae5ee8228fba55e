"""Charts as inline SVG, coloured by the page's style sheet. Every mark has a tooltip, which needs no script."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Final, NamedTuple

_WIDTH: Final = 720  # units; the page scales a chart to its own width
_ROW: Final = 22
_NAMES: Final = 220  # of a bar chart's labels
_FIGURES: Final = 90  # behind its bars
_HEIGHT: Final = 260  # of a line chart
_MOST_DOTS: Final = 40  # on a line
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 12, 44
COLOURS: Final = 6  # series that the style sheet has colours for: .c0 to .c5


class Bar(NamedTuple):
    """One bar, from 0 to ``value``; ``low`` to ``high`` is drawn as a whisker; ``kind`` is a class of the sheet."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    kind: str = "c0"


class Point(NamedTuple):
    """A point of a line; ``low`` to ``high`` is drawn as a whisker."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What is along a side. ``log``: as logarithms, for values above 0; ``zero``: begins at 0."""

    label: str
    log: bool = False
    zero: bool = False


def bars(rows: Sequence[Bar], unit: str, form: str = "{:.1f}", least: float | None = None) -> str:
    """Horizontal bars, one below the other, negative ones to the left of the zero line.

    ``least``: where bars begin, for values that are all far from 0; it is said below the chart.
    """
    base = 0.0 if least is None else least
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    low, high = min([base, *ends]), max([base, *ends])
    if low == high:
        high = low + 1
    span = _WIDTH - _NAMES - _FIGURES

    def at(value: float) -> float:
        return _NAMES + span * (min(max(value, low), high) - low) / (high - low)

    marks = "".join(_bar(row, place * _ROW, base, at, f"{form} {unit}".strip()) for place, row in enumerate(rows))
    height = len(rows) * _ROW
    zero = f'<line class="axis" x1="{at(base):.1f}" x2="{at(base):.1f}" y1="0" y2="{height}"/>'
    note = "" if least is None else f'<p class="hint">Bars begin at {escape(form.format(least))} {escape(unit)}.</p>'
    return _svg(height, marks + zero) + note


def _bar(row: Bar, top: float, base: float, at: Callable[[float], float], form: str) -> str:
    left, right = sorted((at(base), at(row.value)))
    middle, end = top + _ROW / 2, max(right, at(row.high) if row.high is not None else right)
    figure = form.format(row.value)
    range_ = "" if row.low is None or row.high is None else f" ({form.format(row.low)} to {form.format(row.high)})"
    return (
        f"<g><title>{escape(f'{row.label}: {figure}{range_}')}</title>"
        f'<text class="name" x="{_NAMES - 8}" y="{middle + 4:.1f}" text-anchor="end">{escape(_cut(row.label))}</text>'
        f'<rect class="{row.kind}" x="{left:.1f}" y="{top + 4:.1f}" width="{right - left:.1f}" height="{_ROW - 8}"/>'
        f"{_across(row.low, row.high, middle, at)}"
        f'<text class="figure" x="{end + 6:.1f}" y="{middle + 4:.1f}">{escape(figure)}</text></g>'
    )


def _across(low: float | None, high: float | None, middle: float, at: Callable[[float], float]) -> str:
    if low is None or high is None:
        return ""
    return f'<path class="whisker" d="M{at(low):.1f},{middle - 4:.1f}v8m0,-4H{at(high):.1f}m0,-4v8"/>'


def stacks(rows: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str], unit: str) -> str:
    """Bars of several parts, one behind the other, with a legend."""
    most = max([sum(values) for _, values in rows], default=0) or 1
    scale = (_WIDTH - _NAMES - _FIGURES) / most
    marks = []
    for place, (label, values) in enumerate(rows):
        left, middle = float(_NAMES), place * _ROW + _ROW / 2
        name = f'x="{_NAMES - 8}" y="{middle + 4:.1f}" text-anchor="end">{escape(_cut(label))}</text>'
        marks.append(f'<text class="name" {name}')
        for number, (part, value) in enumerate(zip(parts, values, strict=True)):
            marks.append(
                f'<g><title>{escape(f"{label}, {part}: {value:.2f} {unit}")}</title><rect class="c{number % COLOURS}" '
                f'x="{left:.1f}" y="{middle - 7:.1f}" width="{value * scale:.1f}" height="14"/></g>'
            )
            left += value * scale
        marks.append(f'<text class="figure" x="{left + 6:.1f}" y="{middle + 4:.1f}">{sum(values):.2f} {unit}</text>')
    return _legend(parts) + _svg(len(rows) * _ROW, "".join(marks))


def lines(series: Sequence[tuple[str, Sequence[Point]]], x: Axis, y: Axis) -> str:
    """Lines through points, with axes, and a legend where there are several. Empty series are left out."""
    series = [(name, points) for name, points in series if points]
    if not series:
        return '<p class="hint">Nothing was measured.</p>'
    across = _Scale(x, [point.x for _, points in series for point in points], _LEFT, _WIDTH - _RIGHT)
    ends = [end for _, points in series for point in points for end in (point.y, point.low, point.high)]
    up = _Scale(y, [end for end in ends if end is not None], _HEIGHT - _BOTTOM, _TOP)
    marks = "".join(_line(name, points, number, across, up) for number, (name, points) in enumerate(series))
    legend = _legend([name for name, _ in series]) if len(series) > 1 else ""
    return legend + _svg(_HEIGHT, "".join(_grid(across, up)) + marks)


class _Scale:
    """From values to places along one side of the chart."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        self.axis, self._start, self._end = axis, start, end
        low, high = min(values), max(values)
        if axis.zero:
            low = min(0.0, low)
        if not axis.log:
            margin = 0.0 if axis.zero else 0.05 * (high - low)
            low, high = low - margin, high + 0.05 * (high - low)
        if low == high:
            low, high = (low / 2, high * 2) if axis.log else (low - 1, high + 1)
        self._low, self._high = self._of(low), self._of(high)

    def _of(self, value: float) -> float:
        return log10(value) if self.axis.log else value

    def at(self, value: float) -> float:
        """The place of ``value``."""
        return self._start + (self._of(value) - self._low) / (self._high - self._low) * (self._end - self._start)

    def ticks(self) -> Iterator[float]:
        """Round values from one end to the other."""
        if self.axis.log:
            low, high = 10**self._low, 10**self._high
            steps = (1, 2, 5) if self._high - self._low < 3 else (1,)
            powers = range(floor(self._low), ceil(self._high) + 1)
            yield from (step * 10.0**power for power in powers for step in steps if low <= step * 10**power <= high)
            return
        raw = (self._high - self._low) / 6
        size = 10 ** floor(log10(raw))
        step = next(size * times for times in (1, 2, 5, 10) if size * times >= raw)
        yield from (count * step for count in range(ceil(self._low / step), floor(self._high / step) + 1))


def _grid(across: _Scale, up: _Scale) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value in up.ticks():
        place = up.at(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{place:.1f}" y2="{place:.1f}"/>'
        yield f'<text class="tick" x="{_LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{value:,.6g}</text>'
    for value in across.ticks():
        place = across.at(value)
        yield f'<line class="grid" x1="{place:.1f}" x2="{place:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        yield f'<text class="tick" x="{place:.1f}" y="{bottom + 16}" text-anchor="middle">{value:,.6g}</text>'
    middle = (_LEFT + right) / 2
    label = escape(across.axis.label)
    yield f'<text class="label" x="{middle:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{label}</text>'
    yield f'<text class="label" transform="translate(13 {(_TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">'
    yield f"{escape(up.axis.label)}</text>"


def _line(name: str, points: Sequence[Point], number: int, across: _Scale, up: _Scale) -> str:
    ordered = sorted(points)
    path = " ".join(f"{across.at(point.x):.1f},{up.at(point.y):.1f}" for point in ordered)
    kind = f"c{number % COLOURS}"
    marks = [f'<path class="line {kind}" d="M{path}"/>']
    if len(ordered) > _MOST_DOTS:  # a line of frames: single points cannot be distinguished
        return marks[0]
    for point in ordered:
        x, y = across.at(point.x), up.at(point.y)
        told = escape(f"{name}: {point.y:.4g} at {point.x:,.6g}")
        if point.low is not None and point.high is not None:
            low, high = up.at(point.low), up.at(point.high)
            marks.append(f'<path class="whisker" d="M{x - 4:.1f},{low:.1f}h8m-4,0V{high:.1f}m-4,0h8"/>')
        marks.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{told}</title></circle>')
    return "".join(marks)


def _legend(names: Iterable[str]) -> str:
    items = (f'<li class="c{number % COLOURS}">{escape(name)}</li>' for number, name in enumerate(names))
    return f'<ul class="legend">{"".join(items)}</ul>'


def _cut(label: str) -> str:
    return label if len(label) <= 34 else f"{label[:33]}\N{HORIZONTAL ELLIPSIS}"


def _svg(height: float, content: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img">{content}</svg>'
