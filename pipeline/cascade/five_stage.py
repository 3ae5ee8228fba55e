"""Coarse-to-fine culling with one look at each of the five levels."""

from __future__ import annotations

from collections.abc import Iterator

from foveate.pipeline.cascade.culling import Units, coarse, detail, detailed, highest
from foveate.pipeline.cascade.problem import Map, Problem, Tokens

KEEP = (10_000, 5_000, 1_000, 500)  # cells that pass the looks at levels 4, 3, 2 and 1; the last one keeps the budget


class FiveStage:
    """All tokens have LOD 0. No look keeps fewer cells than the budget.

    In stream memory there is one look, at what the reader lacks.
    """

    def __init__(self, min_gain: float, merge: int = 1) -> None:
        self._min_gain = min_gain
        self._merge = merge

    def allocate(self, problem: Problem) -> Tokens:
        """The best cells; see Strategy. With merge, whole groups by the mean of their cells."""
        units = Units(problem, self._merge)
        lost = units.lost(problem)
        if lost is not None:
            return units.tokens(highest(lost, units.lacking(lost, self._min_gain), units.budget))
        chosen = units.all
        for values, keep in zip(_looks(problem), (*KEEP, 0), strict=True):
            chosen = highest(units.means(values), chosen, max(keep // units.size, units.budget))
        return units.tokens(chosen)


def _looks(problem: Problem) -> Iterator[Map]:
    """What a cell is worth by levels 4, 3, 2, 1 and 0. The channels of the score belong to level 2."""
    pull = coarse(problem)
    yield pull
    yield pull + detail(problem, 3)
    yield problem.score
    yield detailed(problem, 1)
    yield detailed(problem, 0)
