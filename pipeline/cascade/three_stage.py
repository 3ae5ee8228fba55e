"""Coarse-to-fine culling: many cells by a quick look, fewer by a closer one, the budget by the final score."""

from __future__ import annotations

from foveate.pipeline.cascade.culling import Units, coarse, detailed, highest
from foveate.pipeline.cascade.problem import Problem, Tokens

COARSE_KEEP = 2_000
MIDDLE_KEEP = 500


class ThreeStage:
    """All tokens have LOD 0. Keeps ~2,000 cells at level 4, 500 at level 2, the budget at level 0.

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
        looks = ((coarse(problem), COARSE_KEEP), (problem.score, MIDDLE_KEEP), (detailed(problem, 0), 0))
        for values, keep in looks:
            chosen = highest(units.means(values), chosen, max(keep // units.size, units.budget))
        return units.tokens(chosen)
