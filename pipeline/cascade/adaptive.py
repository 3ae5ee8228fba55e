"""Culling with an adaptive budget: each stage keeps the fewest cells that hold a share of the total value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.culling import Chosen, Units, coarse, detailed, highest
from foveate.pipeline.cascade.problem import Problem, Tokens


class Adaptive:
    """All tokens have LOD 0. A frame whose value lies in few cells gets few tokens, and never more than the budget.

    As in nucleus sampling (Holtzman et al. 2020), the number kept follows from how the values are distributed.
    """

    def __init__(self, share: float, min_gain: float, merge: int = 1) -> None:
        self._share = share
        self._min_gain = min_gain
        self._merge = merge

    def allocate(self, problem: Problem) -> Tokens:
        """The best cells; see Strategy. With merge, whole groups by the mean of their cells."""
        units = Units(problem, self._merge)
        lost = units.lost(problem)
        if lost is not None:
            return units.tokens(self._fewest(lost, units.lacking(lost, self._min_gain), units.budget))
        chosen = units.all
        for look in (coarse(problem), problem.score):
            values = units.means(look)
            chosen = highest(values, chosen, max(complexity(values, chosen, self._share), units.budget))
        return units.tokens(self._fewest(units.means(detailed(problem, 0)), chosen, units.budget))

    def _fewest(self, values: NDArray[np.float32], units: Chosen, most: int) -> Chosen:
        return highest(values, units, min(complexity(values, units, self._share), most))


def complexity(values: NDArray[np.float32], units: Chosen, share: float) -> int:
    """The fewest of ``units`` that hold ``share`` of the sum of their values, which are not negative. At least one."""
    held = np.cumsum(np.sort(values[units].astype(np.float64))[::-1])
    if not len(held):
        return 0
    return int(np.searchsorted(held, share * held[-1] * (1 - 1e-12))) + 1
