"""Coarse-to-fine culling: many cells by a quick look, fewer by a closer one, the budget by the final score."""

from __future__ import annotations

from foveate.pipeline.cascade.culling import Units, coarse, detailed, highest
from foveate.pipeline.cascade.problem import Problem, Tokens

COARSE_KEEP = 2_000
MIDDLE_KEEP = 500


class ThreeStage:
    """All tokens have LOD 0. Keeps ~2,000 cells at level 4, 500 at level 2, the budget at level 0."""

    def __init__(self, merge: int = 1) -> None:
        self._merge = merge

    def allocate(self, problem: Problem) -> Tokens:
        """The best cells; see Strategy. With merge, whole groups by the mean of their cells."""
        units = Units(problem, self._merge)
        chosen = units.all
        looks = ((coarse(problem), COARSE_KEEP), (problem.score, MIDDLE_KEEP), (detailed(problem, 0), 0))
        for values, keep in looks:
            chosen = highest(units.means(values), chosen, max(keep // units.size, units.budget))
        return units.tokens(chosen)
