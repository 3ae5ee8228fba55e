"""Draws a record of ``foveate bench``. Reads only its JSON, so old records can be drawn too:

python -m foveate.bench.plot results.json out.png
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from foveate.pipeline.errors import FoveateError, SettingsError, SinkError
from foveate.pipeline.extras import install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES: Final = (".png", ".svg", ".pdf")
_SIDE = 0.38  # width of a bar; cases are 1 apart


def check_plot(path: Path) -> None:
    """Raise SettingsError where a plot named ``path`` could not be drawn."""
    if path.suffix.lower() not in SUFFIXES:
        raise SettingsError(f"--plot {str(path)!r} must end in one of {', '.join(SUFFIXES)}")
    if find_spec("matplotlib") is None:
        raise SettingsError(f"--plot needs matplotlib, which is not installed: {install_command('plot')}")


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Draw the cases of ``record``: frames per second of both sides, and where the time goes. Raises SinkError."""
    from matplotlib.figure import Figure

    cases = record["cases"]
    figure = Figure(figsize=(max(8.0, 1.4 * len(cases) + 2), 8.0), layout="constrained")
    speed, stages = figure.subplots(2, 1)
    _draw_speed(speed, cases)
    _draw_stages(stages, cases)
    machine, commit = record["machine"], record["commit"]
    about = f"{machine['processor']}, {machine['cores']} cores"
    figure.suptitle(f"{about}; commit {commit[:10]}{'+' if record['dirty'] else ''}" if commit else about, fontsize=9)
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise SinkError(f"cannot write {path}: {error.strerror}") from error


def _draw_speed(axes: Axes, cases: Sequence[Mapping[str, Any]]) -> None:
    places = range(len(cases))
    decode, pipeline = ([case[f"{side}_fps"] for case in cases] for side in ("decode", "pipeline"))
    axes.bar([place - _SIDE / 2 for place in places], decode, _SIDE, label="bare decoding", color="#b8c4d0")
    bars = axes.bar([place + _SIDE / 2 for place in places], pipeline, _SIDE, label="full pipeline", color="#2a6fb0")
    axes.bar_label(bars, [f"{case['ratio']:.2f}" for case in cases], padding=2)
    axes.set_ylabel("frames per second")
    axes.set_title("Speed; over the bars, the ratio")
    _name_cases(axes, cases)


def _draw_stages(axes: Axes, cases: Sequence[Mapping[str, Any]]) -> None:
    bottom = [0.0] * len(cases)
    for place, stage in enumerate(cases[0]["stages"] if cases else ()):
        heights = [case["stages"][place]["busy_ms"] for case in cases]
        axes.bar(range(len(cases)), heights, 0.6, bottom=bottom, label=stage["name"])
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    axes.set_ylabel("busy ms per frame")
    axes.set_title("Where the time goes; stages run at the same time, as far as there are processors")
    _name_cases(axes, cases)


def _name_cases(axes: Axes, cases: Sequence[Mapping[str, Any]]) -> None:
    axes.set_xticks(range(len(cases)), [case["name"].replace(", ", ",\n") for case in cases])
    axes.spines[["top", "right"]].set_visible(False)
    if cases:
        axes.legend(frameon=False)


def _record(path: Path) -> dict[str, Any]:
    """A record of ``foveate bench``. Raises OSError, and ValueError for another file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if all({"name", "decode_fps", "pipeline_fps", "ratio", "stages"} <= case.keys() for case in record["cases"]):
            return {name: record[name] for name in ("cases", "machine", "commit", "dirty")}
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    raise ValueError(f"{path} is not a record of foveate bench")


def main(arguments: Sequence[str]) -> int:
    """Draw the record in the first argument into the file named by the second. Returns the exit code."""
    try:
        if len(arguments) != 2:
            raise SettingsError("usage: python -m foveate.bench.plot RESULTS.json OUT.png")
        check_plot(Path(arguments[1]))
        draw(_record(Path(arguments[0])), Path(arguments[1]))
    except (FoveateError, OSError, ValueError) as error:
        print(f"foveate: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingsError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
