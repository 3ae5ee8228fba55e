"""Coarse-to-fine culling: each stage keeps the best cells of those before it, the last one as many as the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from foveate.pipeline.cascade.culling import Units, coarse, detail, detailed, highest
from foveate.pipeline.cascade.problem import Map, Problem, Tokens

COARSE_KEEP = 2_000
MIDDLE_KEEP = 500

Stages = Callable[[Problem], Iterable[tuple[Map, int]]]
"""Pairs, from coarse to fine, of a value per cell, float32[grid], and how many cells pass; no fewer than the budget."""


class TopK:
    """All tokens have LOD 0. In stream memory one stage suffices: it ranks cells by the error the reader still has."""

    def __init__(self, stages: Stages, min_gain: float, merge: int = 1) -> None:
        self._stages = stages
        self._min_gain = min_gain
        self._merge = merge

    def allocate(self, problem: Problem) -> Tokens:
        """The best cells; see Strategy. With merge, whole groups by the mean of their cells."""
        units = Units(problem, self._merge)
        lost = units.lost(problem)
        if lost is not None:
            return units.tokens(highest(lost, units.lacking(lost, self._min_gain), units.budget))
        chosen = units.all
        for values, keep in self._stages(problem):
            chosen = highest(units.means(values), chosen, max(keep // units.size, units.budget))
        return units.tokens(chosen)


def three_stages(problem: Problem) -> Iterator[tuple[Map, int]]:
    """Levels 4, 2 and 0."""
    yield coarse(problem), COARSE_KEEP
    yield problem.score, MIDDLE_KEEP
    yield detailed(problem, 0), 0


def five_stages(problem: Problem) -> Iterator[tuple[Map, int]]:
    """Levels 4, 3, 2, 1 and 0. The channels of the score belong to level 2."""
    pull = coarse(problem)
    yield pull, 10_000
    yield pull + detail(problem, 3), 5_000
    yield problem.score, 1_000
    yield detailed(problem, 1), 500
    yield detailed(problem, 0), 0


def one_stage(problem: Problem) -> Iterator[tuple[Map, int]]:
    """Level 0 alone: what ``soft.soft_top_k`` chooses at temperature 0."""
    yield detailed(problem, 0), 0
