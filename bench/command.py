"""``foveate bench``: speed and quality of the pipeline, by suites; comparison and reports of records."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from rich.console import Console
from rich.text import Text
from tyro.conf import FlagCreatePairsOff, Positional, arg

from foveate.bench.case import Case, Memory, RedCheckError, cases_of, file_clips, with_changes
from foveate.bench.clips.samples import cache_folder, default_clips
from foveate.bench.entry import check_folders, check_least
from foveate.bench.records.compare import compare
from foveate.bench.records.table import print_record, standard_error
from foveate.bench.records.writing import hand_out, origin
from foveate.bench.report.page import report, write_page
from foveate.bench.speed.turns import STATISTIC, bench_case
from foveate.bench.suites.printing import print_suite
from foveate.bench.suites.suite import SuiteName, run_suite
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.exits import Exit
from foveate.pipeline.presets import load_preset

_FILES = "Video files. Default: the sample clips, and others made from them."
_SUITE = (
    "quality: the picture that the tokens make, against other ways to choose them. speed: as without a suite, and "
    "cost by frame size, budget, share changed, queries and streams. ablation: other values of the settings."
)
_QUICK = "Run a suite on fewer clips and frames, with fewer repeats: minutes on a small machine."
_OUT = "The JSON record. Default: standard output. An interrupted suite resumes from it."
_REPORT = "Write a self-contained web page with plots."
_REPEATS = "Timed runs of each side, alternating. Default: 3."
_FRAMES = "Stop each file after this many frames."
_MEMORY = "Measure with each of these kinds of memory. Default: that of the settings; for suites, both."
_CONFIG = "Settings: a TOML file, or the name of a preset."
_TURNS = 3


def bench(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help=_FILES)] = (),
    suite: Annotated[SuiteName | None, arg(metavar="{quality,speed,ablation}", help=_SUITE)] = None,
    quick: FlagCreatePairsOff[Annotated[bool, arg(help=_QUICK)]] = False,
    out: Annotated[str | None, arg(metavar="FILE.json", help=_OUT, aliases=["-o"])] = None,
    report: Annotated[str | None, arg(metavar="FILE.html", help=_REPORT)] = None,
    repeats: Annotated[int | None, arg(metavar="N", help=_REPEATS)] = None,
    frames: Annotated[int | None, arg(metavar="N", help=_FRAMES)] = None,
    memory: Annotated[tuple[Memory, ...], arg(metavar="{frame,stream} ...", help=_MEMORY)] = (),
    config: Annotated[str | None, arg(metavar="FILE", help=_CONFIG, aliases=["-c"])] = None,
) -> int:
    """Compare the speed of the full pipeline with that of bare decoding of the same files, or measure a whole suite.
    $ foveate bench compare BEFORE.json AFTER.json
    $ foveate bench report RECORD.json ... --out FILE.html

    A case is checked before it is timed; one that fails gives no numbers, and the exit code 1.
    """
    settings = load_preset(config)
    _check(repeats, frames, out, report)
    console = standard_error()
    if suite is not None:
        held = Path(out) if out is not None and _resumes(Path(out)) else None
        record = run_suite(
            suite, files, settings, memory, repeats, frames, quick, held, lambda line: console.print(Text(line))
        )
    elif quick:
        raise SettingsError("--quick goes with --suite quality, speed or ablation")
    else:
        clips = file_clips(files) if files else default_clips(cache_folder(), console.print)
        limited = settings if frames is None else with_changes(settings, source={"frames": frames})
        record = bench_cases(cases_of(clips, limited, memory), repeats or _TURNS, console)
    hand_out(record, out)
    (print_record if suite is None else print_suite)(record, console)
    if report is not None:
        write_page([record], Path(report))
    return Exit.FAILED if record["red"] else Exit.DONE


def bench_cases(cases: Iterable[Case], repeats: int, console: Console) -> dict[str, Any]:
    """The record of a whole run. A case whose check is red stands under ``red``, with the reason and no number."""
    record = {**origin(), "command": "bench", "statistic": STATISTIC, "repeats": repeats, "cases": [], "red": []}
    for case in cases:
        console.print(Text(f"benching {case.name}"))
        try:
            record["cases"].append(bench_case(case, repeats))
        except RedCheckError as error:
            record["red"].append({"name": case.name, "reason": str(error)})
    return record


Command = Callable[..., int]

_COMMANDS: Final[Mapping[str, Command]] = {"compare": compare, "report": report}


def command_of(arguments: Sequence[str]) -> tuple[Command, str, Sequence[str]]:
    """The function of a ``foveate bench`` command line, whose parameters are the flags; its name, and its arguments.

    A file with the name of a command is given as ./compare.
    """
    if arguments and arguments[0] in _COMMANDS:
        return _COMMANDS[arguments[0]], f"bench {arguments[0]}", arguments[1:]
    return bench, "bench", arguments


def _resumes(out: Path) -> bool:
    """Whether a suite saves its record there after each job and resumes from it: not if it is a device."""
    return out.is_file() or not out.exists()


def _check(repeats: int | None, frames: int | None, out: str | None, report: str | None) -> None:
    """Raise SettingsError before measuring for what would fail afterwards."""
    numbers = {"repeats": repeats, "frames": frames}
    check_least(1, **{flag: number for flag, number in numbers.items() if number is not None})
    check_folders(out=out, report=report)
