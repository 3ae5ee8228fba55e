"""For strategies that only use LOD 0: the units they choose from, and the values by which they rank them."""

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Problem, Tokens, in_groups, means_of_groups, over_groups
from foveate.pipeline.geometry import Map

UnitIndices = NDArray[np.intp]  # indices into the flat map of units, ascending


class Units:
    """One frame's units: cells, or ``merge`` x ``merge`` groups of cells that are chosen as a whole."""

    def __init__(self, problem: Problem, merge: int) -> None:
        self._merge = merge
        self._geometry = problem.geometry
        inside = problem.geometry.units(merge)
        self._columns = inside.shape[1]
        self.size = merge**2  # tokens per unit
        self.budget = problem.budget // self.size
        self.all: UnitIndices = np.flatnonzero(inside)

    def means(self, values: Map) -> NDArray[np.float32]:
        """The mean of float32[grid] over the cells of each unit, flat."""
        return means_of_groups(values, self._merge).ravel()

    def labels(self, values: Map) -> NDArray[np.intp]:
        """The whole number of each unit's first cell, flat: labels are never averaged."""
        return np.rint(values[:: self._merge, :: self._merge]).astype(np.intp).ravel()

    def reader_error(self, problem: Problem) -> NDArray[np.float32] | None:
        """Weighted squared error of the reader's picture over each unit, flat; None if nothing has been shown yet.

        A token of LOD 0 removes all of it, so it is the exact gain of choosing the unit.
        """
        return None if problem.kept is None else over_groups(problem.kept * problem.weight, self._merge).ravel()

    def with_error(self, error: NDArray[np.float32], least: float) -> UnitIndices:
        """The units whose ``error`` exceeds ``least`` per token."""
        return self.all[error[self.all] > np.float32(least * self.size)]

    def tokens(self, chosen: UnitIndices) -> Tokens:
        """The tokens of LOD 0 on the units ``chosen``."""
        row, column = (chosen // self._columns).astype(np.int32), (chosen % self._columns).astype(np.int32)
        return in_groups(Tokens(np.zeros(len(row), np.uint8), row, column), self._merge, self._geometry)


def highest(values: NDArray[np.float32], units: UnitIndices, keep: int) -> UnitIndices:
    """The ``keep`` of ``units`` with the highest values; of equal ones the first in reading order."""
    return np.sort(units[np.argsort(-values[units], kind="stable")[:keep]])


def coarse(problem: Problem) -> Map:
    """Value of whole cells, as at level 4: saliency plus motion."""
    return problem.channels["saliency"] + problem.channels["motion"]


def detail(problem: Problem, level: int) -> Map:
    """Detail that level 0..3 adds to the next coarser one: root mean square in 1/64 of the range, clipped to 1."""
    errors = problem.picture_errors
    hidden = np.maximum(errors[level] - (errors[level - 1] if level else np.float32(0)), np.float32(0))
    return np.minimum(np.sqrt(hidden / np.float32(256.0)) / np.float32(4.0), np.float32(1.0))


def detailed(problem: Problem, level: int) -> Map:
    """The score times 0.5 to 1, by the detail that ``level`` adds."""
    return problem.score * (np.float32(0.5) + np.float32(0.5) * detail(problem, level))
