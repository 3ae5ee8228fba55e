"""``foveate bench compare``: significant differences between two records."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.text import Text
from tyro.conf import FlagCreatePairsOff, Positional, arg

from foveate.bench.records.difference import Comparison, Difference, compare_records
from foveate.bench.records.reading import Record, commit, machine, read_record, title
from foveate.bench.records.table import plain_table, standard_error
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.exits import Exit

_COLOURS = {"better": "green", "worse": "red", "unsure": "dim", "same": "dim", "elsewhere": "dim"}
_NAMED = 3  # cases that are named where some are left out


def compare(
    before: Annotated[Positional[str], arg(metavar="BEFORE.json", help="A record of a benchmark.")],
    after: Annotated[Positional[str], arg(metavar="AFTER.json", help="A record of the same benchmark.")],
    every: FlagCreatePairsOff[Annotated[bool, arg(name="all", help="List unchanged figures as well.")]] = False,
) -> int:
    """Compare two records of the same benchmark, with 95% intervals.

    The table goes to standard output. Exit code 0: nothing is worse beyond noise; 1: something is, or a record could
    not be read. Times are compared on one machine only.
    """
    records = read_record(Path(before)), read_record(Path(after))
    if title(records[0]) != title(records[1]):
        raise SettingsError(f"{before} is of {title(records[0])}, {after} of {title(records[1])}; name two of the same")
    found = compare_records(*records)
    if not found.differences:
        raise SettingsError(f"{before} and {after} have no case in common that was measured on the same input")
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = standard_error().width
    _print(found, records, every, console)
    return Exit.FAILED if found.count("worse") else Exit.DONE


def _print(found: Comparison, records: tuple[Record, Record], every: bool, console: Console) -> None:
    for name, record in zip(("before", "after"), records, strict=True):
        unfinished = "" if record.get("complete", True) else ", unfinished"
        console.print(Text(f"{name}: {title(record)}, {commit(record)}, {machine(record)}{unfinished}"))
    shown = [one for one in found.differences if every or one.verdict not in ("same", "unsure")]
    if shown:
        table = plain_table("case", "figure", "before", "after", "change", "95% interval", "")
        for one in shown:
            table.add_row(*_row(one))
        console.print(table)
    counts = [f"{found.count(verdict)} {verdict}" for verdict in ("better", "worse", "unsure", "same")]
    console.print(f"figures: {', '.join(counts)}" + ("" if every else "; --all shows every one"))
    if not found.same_machine:
        console.print(f"times were taken on two machines: {found.count('elsewhere')} of them count for nothing")
    for what, names in (
        ("had another input", found.other_input),
        ("only before", found.only_before),
        ("only after", found.only_after),
    ):
        if names:
            console.print(Text(f"{what}: {_some(names)}"))


def _row(one: Difference) -> Iterable[Text | str]:
    metric = one.metric
    unit = f" {metric.unit}" if metric.unit else ""
    show = _percent if metric.timed else _signed
    interval = "" if one.interval is None else f"{show(one.interval[0])} to {show(one.interval[1])}"
    return (
        Text(one.name),
        metric.label,
        f"{one.before:.3g}{unit}" if metric.timed else f"{one.before:.2f}{unit}",
        f"{one.after:.3g}{unit}" if metric.timed else f"{one.after:.2f}{unit}",
        show(one.change),
        interval,
        Text("another machine" if one.verdict == "elsewhere" else one.verdict, style=_COLOURS[one.verdict]),
    )


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}%"


def _signed(difference: float) -> str:
    return f"{difference:+.3f}"


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return "; ".join(names[:_NAMED]) + more
