"""``foveate bench``: how fast the pipeline is, compared with bare decoding of the same files in the same run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.text import Text
from tyro.conf import Positional, arg

from foveate.app.exits import Exit
from foveate.app.presets import load_preset
from foveate.bench.case import Case, Memory, RedCheckError, cases_of, file_clips
from foveate.bench.clips import cache_folder, default_clips
from foveate.bench.entry import check_folders, check_least
from foveate.bench.plot import check_plot, draw
from foveate.bench.record import hand_out, origin, record_text
from foveate.bench.speed import STATISTIC, bench_case
from foveate.bench.table import print_record, standard_error
from foveate.pipeline.settings import Settings

_FILES = "Video files. None: the sample clips, two of them scaled to 1080p, and a still scene."
_OUT = "Where the JSON record goes. Default: standard output."
_PLOT = "Draw the record into this file: .png, .svg or .pdf."
_REPEATS = "Timed runs of each side, taking turns; the median counts."
_FRAMES = "Stop each file after this many frames."
_MEMORY = "Bench with each of these memories. Default: the one of the settings."
_CONFIG = "Settings: a TOML file, or the name of a preset."


def bench(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help=_FILES)] = (),
    out: Annotated[str | None, arg(metavar="FILE.json", help=_OUT, aliases=["-o"])] = None,
    plot: Annotated[str | None, arg(metavar="FILE.png", help=_PLOT)] = None,
    repeats: Annotated[int, arg(metavar="N", help=_REPEATS)] = 3,
    frames: Annotated[int | None, arg(metavar="N", help=_FRAMES)] = None,
    memory: Annotated[tuple[Memory, ...], arg(help=_MEMORY)] = (),
    config: Annotated[str | None, arg(metavar="FILE", help=_CONFIG, aliases=["-c"])] = None,
) -> int:
    """Compare the speed of the full pipeline with that of bare decoding of the same files, in the same run.

    A case is checked before it is timed; one that fails gives no numbers, and the exit code 1.
    """
    settings = _settings(config, frames)
    _check(repeats, out, plot)
    console = standard_error()
    clips = file_clips(files) if files else default_clips(cache_folder(), console.print)
    record = bench_cases(cases_of(clips, settings, memory), repeats, console)
    hand_out(record, out)
    print_record(record, console)
    if plot is not None:
        draw(json.loads(record_text(record)), Path(plot))
    return Exit.FAILED if record["red"] else Exit.DONE


def bench_cases(cases: Iterable[Case], repeats: int, console: Console) -> dict[str, Any]:
    """The record of a whole run. A case whose check is red stands under ``red``, with the reason and no number."""
    record: dict[str, Any] = {
        **origin(),
        "command": "bench",
        "statistic": STATISTIC,
        "repeats": repeats,
        "cases": [],
        "red": [],
    }
    for case in cases:
        console.print(Text(f"benching {case.name}"))
        try:
            record["cases"].append(bench_case(case, repeats))
        except RedCheckError as error:
            record["red"].append({"name": case.name, "reason": str(error)})
    return record


def _settings(config: str | None, frames: int | None) -> Settings:
    settings = load_preset(config)
    if frames is None:
        return settings
    check_least(1, frames=frames)
    return settings.model_copy(update={"source": settings.source.model_copy(update={"frames": frames})})


def _check(repeats: int, out: str | None, plot: str | None) -> None:
    """Raise SettingsError now for what would fail when all is done."""
    check_least(1, repeats=repeats)
    check_folders(out=out, plot=plot)
    if plot is not None:
        check_plot(Path(plot))
