"""Which value of each group an ablation chooses. Reads only a record's cases."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from foveate.bench.records.reading import Case
from foveate.bench.records.table import markdown

NEAR: Final = 0.05  # dB below the best that count as equal: then the cheapest value is chosen
_CHEAPER: Final = 0.9  # of the default's cost: below it, the default makes room for a cheaper value as good


@dataclass(frozen=True, slots=True)
class Choice:
    """One group. Means over the clips and memories on which all of its values were measured.

    ``gains``: PSNR less that of the default, dB. ``agreements``: correlation with exact likeness. ``costs``: CPU time
    over the default's. Empty where not measured. ``best`` is the value that the figures choose.
    """

    group: str
    default: str | None
    best: str | None
    gains: dict[str, float]
    agreements: dict[str, float]
    costs: dict[str, float]

    @property
    def sentence(self) -> str:
        """What was chosen, in words."""
        if self.best is None:
            return "Not chosen by these figures: more costs more, or the values are parts and no alternatives."
        if self.best == self.default:
            return f"The default, {self.default}, stays."
        gain = f" ({self.gains[self.best]:+.2f} dB)" if self.best in self.gains else ""
        cost = f", at {self.costs[self.best]:.2f} of the CPU time" if self.best in self.costs else ""
        return f"The figures favour {self.best} over the default, {self.default}{gain}{cost}."


def choices(cases: Sequence[Case]) -> Iterator[Choice]:
    """The choice of every group, in the order of the record."""
    for group in dict.fromkeys(case["group"] for case in cases):
        yield _choice(group, [case for case in cases if case["group"] == group])


def _choice(group: str, cases: Sequence[Case]) -> Choice:
    values = list(dict.fromkeys(case["value"] for case in cases))
    default = next((case["value"] for case in cases if case.get("default")), None)
    base = default or values[0]
    psnr, correlation, cost = (_means(cases, values, key) for key in ("psnr_luma", "correlation", "cpu_ms"))
    gains = {value: mean - psnr[base] for value, mean in psnr.items()} if base in psnr else {}
    costs = {value: mean / cost[base] for value, mean in cost.items()} if base in cost else {}
    return Choice(group, default, _best(default, gains, costs), gains, correlation, costs)


def _best(default: str | None, gains: dict[str, float], costs: dict[str, float]) -> str | None:
    """The cheapest value of those near the best; the default where it is one of them and hardly dearer."""
    if default is None or not gains:
        return None
    good = [value for value, gain in gains.items() if gain >= max(gains.values()) - NEAR]
    cheapest = min(good, key=lambda value: costs[value])
    return default if default in good and costs[cheapest] > _CHEAPER else cheapest


def _means(cases: Sequence[Case], values: Sequence[str], key: str) -> dict[str, float]:
    """The mean of each value over the places (clip and memory) at which all values have the figure."""
    held = {(case["value"], case["clip"], case["memory"]): case[key] for case in cases if key in case}
    places = list(dict.fromkeys((clip, memory) for _, clip, memory in held))
    common = [place for place in places if all((value, *place) in held for value in values)]
    return {value: fmean(held[value, *place] for place in common) for value in values} if common else {}


def choices_table(cases: Sequence[Case]) -> str:
    """The choices as Markdown, a row for each value: PSNR against the default in dB, or the correlation with the exact
    likeness; CPU time over the default's; which value is the default, and which one the figures choose.
    """
    heading = ("setting", "value", "PSNR, dB (PCA size: correlation)", "CPU time", "")
    return markdown(heading, [row for choice in choices(cases) for row in _rows(choice)])


def _rows(choice: Choice) -> Iterator[tuple[str, ...]]:
    for place, value in enumerate(dict.fromkeys((*choice.gains, *choice.agreements, *choice.costs))):
        cost = f"{choice.costs[value]:.2f}" if value in choice.costs else ""
        marks = {"default": choice.default, "chosen": choice.best}
        marked = ", ".join(mark for mark, held in marks.items() if held == value)
        yield "" if place else choice.group, value, _found(choice, value), cost, marked


def _found(choice: Choice, value: str) -> str:
    if value in choice.agreements:
        return f"{choice.agreements[value]:.3f}"
    return f"{choice.gains[value]:+.2f}" if value in choice.gains else ""
