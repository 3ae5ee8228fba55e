"""``foveate bench compare``: differences between two records of a benchmark, with the significant ones marked."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from rich.text import Text
from tyro.conf import FlagCreatePairsOff, Positional, arg

from foveate.bench.records.interval import paired_interval, ratio_interval
from foveate.bench.records.metrics import METRICS, Metric, number
from foveate.bench.records.reading import Case, Record, commit, machine, read_record, title
from foveate.bench.records.table import plain_table, standard_error
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.exits import Exit

Verdict = Literal["better", "worse", "same", "unsure", "elsewhere"]

_COLOURS = {"better": "green", "worse": "red", "unsure": "dim", "same": "dim", "elsewhere": "dim"}
_NAMED = 3  # cases that are named where some are left out


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of one case, before and after.

    ``change`` is the ratio of times, or of others the difference; ``interval`` its 95% interval, None where there are
    too few samples. ``same``: less than is worth telling. ``unsure``: more, but not more than noise. ``elsewhere``:
    times of two machines, which say nothing.
    """

    name: str
    metric: Metric
    before: float
    after: float
    change: float
    interval: tuple[float, float] | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two records. ``only`` and ``other_input``: names of cases that one of them lacks, or that had another input."""

    differences: tuple[Difference, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    other_input: tuple[str, ...]
    same_machine: bool

    def count(self, verdict: Verdict) -> int:
        """How many figures have this verdict."""
        return sum(difference.verdict == verdict for difference in self.differences)


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
    show = _percent if metric.timed else "{:+.3f}".format
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


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return "; ".join(names[:_NAMED]) + more


def compare_records(before: Record, after: Record) -> Comparison:
    """Compare the cases of equal names and inputs."""
    left, right = ({case["name"]: case for case in record["cases"]} for record in (before, after))
    both = [name for name in left if name in right]
    other = tuple(name for name in both if left[name].get("sha256") != right[name].get("sha256"))
    here = machine(before) == machine(after)
    pairs = ((name, left[name], right[name]) for name in both if name not in other)
    return Comparison(
        tuple(found for name, one, two in pairs for found in _case_differences(name, one, two, here)),
        tuple(name for name in left if name not in right),
        tuple(name for name in right if name not in left),
        other,
        here,
    )


def _case_differences(name: str, before: Case, after: Case, here: bool) -> Iterator[Difference]:
    for metric in METRICS:
        one, two = number(before, metric), number(after, metric)
        if one is None or two is None or (metric.timed and min(one, two) <= 0):
            continue
        samples = metric.samples(before), metric.samples(after)
        if metric.timed:
            change, interval = two / one, ratio_interval(*samples)
            verdict = _verdict(metric, change - 1, _shifted(interval, -1)) if here else "elsewhere"
        else:
            change, interval = two - one, _paired(*samples)
            verdict = _verdict(metric, change, interval or (change, change))
        yield Difference(name, metric, one, two, change, interval, verdict)


def _paired(before: Sequence[float], after: Sequence[float]) -> tuple[float, float] | None:
    if len(before) != len(after):
        return None
    return paired_interval([two - one for one, two in zip(before, after, strict=True)])


def _shifted(interval: tuple[float, float] | None, by: float) -> tuple[float, float] | None:
    return None if interval is None else (interval[0] + by, interval[1] + by)


def _verdict(metric: Metric, change: float, interval: tuple[float, float] | None) -> Verdict:
    """``change`` and ``interval`` around 0, which is no change."""
    if abs(change) < metric.least:
        return "same"
    if interval is None or interval[0] <= 0 <= interval[1]:
        return "unsure"
    return "better" if (change > 0) == (metric.better == "higher") else "worse"
