"""Coarse-to-fine culling: each stage keeps the best cells of those before it, the last one as many as the budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.culling import UnitIndices, Units, coarse, detail, detailed, highest
from foveate.pipeline.cascade.problem import Problem, Tokens
from foveate.pipeline.geometry import Map

COARSE_KEEP = 2_000
MIDDLE_KEEP = 500

Stages = Callable[[Problem], Iterable[tuple[Map, int]]]
"""Pairs, from coarse to fine, of a value per cell, float32[grid], and how many cells pass, but at least the budget.

The last has 0: as many pass as the budget allows.
"""


class TopK:
    """All tokens have LOD 0. In stream memory one stage suffices: it ranks cells by the error the reader still has.

    With ``share`` each stage keeps the fewest cells that hold that share of the total value instead, as in nucleus
    sampling (Holtzman et al. 2020): a frame whose value lies in few cells gets few tokens, and never more than the
    budget.
    """

    def __init__(self, stages: Stages, min_gain: float, merge: int = 1, share: float | None = None) -> None:
        self._stages = stages
        self._min_gain = min_gain
        self._merge = merge
        self._share = share

    def allocate(self, problem: Problem) -> Tokens:
        """The best cells; see Strategy. With merge, whole groups by the mean of their cells."""
        units = Units(problem, self._merge)
        error = units.reader_error(problem)
        if error is not None:
            return units.tokens(self._best(error, units.with_error(error, self._min_gain), 0, units))
        chosen = units.all
        for values, keep in self._stages(problem):
            chosen = self._best(units.means(values), chosen, keep, units)
        return units.tokens(chosen)

    def _best(self, values: NDArray[np.float32], chosen: UnitIndices, keep: int, units: Units) -> UnitIndices:
        """Those of ``chosen`` that pass a stage."""
        if self._share is None:
            return highest(values, chosen, max(keep // units.size, units.budget))
        least = complexity(values, chosen, self._share)
        return highest(values, chosen, max(least, units.budget) if keep else min(least, units.budget))


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


def complexity(values: NDArray[np.float32], units: UnitIndices, share: float) -> int:
    """The fewest of ``units`` that hold ``share`` of the sum of their values, which are not negative. At least one."""
    held = np.cumsum(np.sort(values[units].astype(np.float64))[::-1])
    if not len(held):
        return 0
    return int(np.searchsorted(held, share * held[-1] * (1 - 1e-12))) + 1
