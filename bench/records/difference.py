"""Differences between two records of the same benchmark, case by case, with the significant ones marked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from foveate.bench.records.interval import paired_interval, ratio_interval
from foveate.bench.records.metrics import METRICS, Metric, number
from foveate.bench.records.reading import Case, Record, machine

Verdict = Literal["better", "worse", "same", "unsure", "elsewhere"]


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
