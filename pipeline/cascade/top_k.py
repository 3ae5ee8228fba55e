"""Coarse-to-fine culling: each stage keeps the best cells of those before it, the last one as many as the budget."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.culling import UnitIndices, Units, coarse, detail, detailed, highest
from foveate.pipeline.cascade.problem import Problem, Tokens
from foveate.pipeline.geometry import Map
from foveate.pipeline.spec.top_k import CellValue


class Stage(NamedTuple):
    """One stage: by which value of a cell it ranks, and how many cells pass."""

    value: CellValue
    keep: int  # but at least the budget; 0 in the last stage: as many as the budget allows


THREE_STAGES: Final = (
    Stage(CellValue.COARSE, 2_000),
    Stage(CellValue.SCORE, 500),
    Stage(CellValue.SCORE_DETAIL_0, 0),
)
"""Levels 4, 2 and 0."""
FIVE_STAGES: Final = (
    Stage(CellValue.COARSE, 10_000),
    Stage(CellValue.COARSE_DETAIL, 5_000),
    Stage(CellValue.SCORE, 1_000),
    Stage(CellValue.SCORE_DETAIL_1, 500),
    Stage(CellValue.SCORE_DETAIL_0, 0),
)
"""Levels 4, 3, 2, 1 and 0."""
ONE_STAGE: Final = (Stage(CellValue.SCORE_DETAIL_0, 0),)
"""Level 0 alone: what ``soft.soft_top_k`` chooses at temperature 0."""

NEARLY: Final = 1 - 1e-12
"""A share counts as held from this part of it on: sums of float64 depend a little on their order."""

_VALUES: Final[Mapping[CellValue, Callable[[Problem], Map]]] = {
    CellValue.COARSE: coarse,
    CellValue.COARSE_DETAIL: lambda problem: coarse(problem) + detail(problem, 3),
    CellValue.SCORE: lambda problem: problem.score,
    CellValue.SCORE_DETAIL_1: lambda problem: detailed(problem, 1),
    CellValue.SCORE_DETAIL_0: lambda problem: detailed(problem, 0),
}


class TopK:
    """All tokens have LOD 0. In stream memory one stage suffices: it ranks cells by the error the reader still has.

    With ``share`` each stage keeps the fewest cells that hold that share of the total value instead, as in nucleus
    sampling (Holtzman et al. 2020): a frame whose value lies in few cells gets few tokens, and never more than the
    budget.
    """

    def __init__(self, stages: tuple[Stage, ...], min_gain: float, merge: int = 1, share: float | None = None) -> None:
        self.stages = stages
        self._min_gain = min_gain
        self._merge = merge
        self.share = share

    def allocate(self, problem: Problem) -> Tokens:
        """The best cells; see Strategy. With merge, whole groups by the mean of their cells."""
        units = Units(problem, self._merge)
        error = units.reader_error(problem)
        if error is not None:
            return units.tokens(self._best(error, units.with_error(error, self._min_gain), 0, units))
        chosen = units.all
        for stage in self.stages:
            chosen = self._best(units.means(_VALUES[stage.value](problem)), chosen, stage.keep, units)
        return units.tokens(chosen)

    def _best(self, values: NDArray[np.float32], chosen: UnitIndices, keep: int, units: Units) -> UnitIndices:
        """Those of ``chosen`` that pass a stage."""
        if self.share is None:
            return highest(values, chosen, max(keep // units.size, units.budget))
        least = complexity(values, chosen, self.share)
        return highest(values, chosen, max(least, units.budget) if keep else min(least, units.budget))


def complexity(values: NDArray[np.float32], units: UnitIndices, share: float) -> int:
    """The fewest of ``units`` that hold ``share`` of the sum of their values, which are not negative. At least one."""
    held = np.cumsum(np.sort(values[units].astype(np.float64))[::-1])
    if not len(held):
        return 0
    return int(np.searchsorted(held, share * held[-1] * NEARLY)) + 1
