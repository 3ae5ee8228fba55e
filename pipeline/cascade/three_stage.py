"""Coarse-to-fine culling: many cells by a quick look, fewer by a closer one, the budget by the final score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Map, Problem, Tokens, in_order, over_groups
from foveate.pipeline.cascade.quadtree import places_of_children

COARSE_KEEP = 2_000
MIDDLE_KEEP = 500


class ThreeStage:
    """All tokens have LOD 0. Keeps ~2,000 cells at level 4, 500 at level 2, the budget at level 0."""

    def __init__(self, merge: int = 1) -> None:
        self._merge = merge

    def allocate(self, problem: Problem) -> Tokens:
        """The best cells; see Strategy. With merge, whole 2x2 groups by the mean of their cells."""
        maps = [_coarse(problem), _middle(problem), _fine(problem)]
        inside = problem.geometry.inside
        if self._merge == 2:
            maps, inside = (
                [np.asarray(over_groups(values) / 4, np.float32) for values in maps],
                over_groups(inside.astype(np.float32)) > 0,
            )
        budget = problem.budget // self._merge**2
        columns = inside.shape[1]
        cells = np.flatnonzero(inside)
        for values, keep in zip(maps, (COARSE_KEEP, MIDDLE_KEEP, 0), strict=True):
            cells = _highest(values.ravel(), cells, max(keep // self._merge**2, budget) if keep else budget)
        row, column = (cells // columns).astype(np.int32), (cells % columns).astype(np.int32)
        if self._merge == 2:
            row, column = places_of_children(row, column)
        return in_order(np.zeros(len(row), np.uint8), row, column)


def _coarse(problem: Problem) -> Map:
    """What level 4 alone can tell: saliency, and motion of whole cells."""
    return problem.channels["saliency"] + problem.channels["motion"]


def _middle(problem: Problem) -> Map:
    """What the channels of the analysis level tell: the score."""
    return problem.score


def _fine(problem: Problem) -> Map:
    """The score, with the detail that only level 0 shows (root mean square, in 1/64 of the range)."""
    detail = np.sqrt(np.maximum(problem.errors[0], 0.0) / np.float32(256.0)) / np.float32(4.0)
    return problem.score * (np.float32(0.5) + np.float32(0.5) * np.minimum(detail, np.float32(1.0)))


def _highest(values: NDArray[np.float32], cells: NDArray[np.intp], keep: int) -> NDArray[np.intp]:
    """The ``keep`` cells with the highest values; equal ones in reading order."""
    return np.sort(cells[np.argsort(-values[cells], kind="stable")[:keep]])
