"""Regions first: the best of about 50 clusters, then the best cells inside them."""

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.culling import UnitIndices, Units, detailed, highest
from foveate.pipeline.cascade.problem import Problem, Tokens

KEEP = 10  # clusters; more where these hold fewer cells than the budget


class ClusterFirst:
    """All tokens have LOD 0. Reads the channel ``cluster_id``."""

    def __init__(self, min_gain: float, merge: int = 1) -> None:
        self._min_gain = min_gain
        self._merge = merge

    def allocate(self, problem: Problem) -> Tokens:
        """The best cells of the clusters with the highest mean score; see Strategy.

        In stream memory cells are ranked by the error the reader still has, and clusters by their mean error.
        """
        units = Units(problem, self._merge)
        error = units.reader_error(problem)
        if error is None:
            chosen, regions, best = units.all, units.means(problem.score), units.means(detailed(problem, 0))
        else:
            chosen, regions, best = units.with_error(error, self._min_gain), error, error
        label = units.labels(problem.channels["cluster_id"])
        rank = ranks(label[chosen], regions[chosen])
        inside = chosen[rank[label[chosen]] < enough(rank[label[chosen]], units.budget)]
        return units.tokens(highest(best, inside, units.budget))


def ranks(label: UnitIndices, values: NDArray[np.float32]) -> NDArray[np.intp]:
    """Rank of each cluster by the mean value of its units, from 0; int[labels]. Empty clusters come last."""
    count = np.bincount(label)
    mean = np.where(count > 0, np.bincount(label, weights=values) / np.maximum(count, 1), -1.0)
    rank = np.empty(len(mean), np.intp)
    rank[np.argsort(-mean, kind="stable")] = np.arange(len(mean))
    return rank


def enough(rank: NDArray[np.intp], budget: int) -> int:
    """How many clusters hold ``budget`` units between them, at least KEEP; ``rank`` is that of each unit's cluster."""
    held = np.cumsum(np.bincount(rank))
    return max(KEEP, int(np.searchsorted(held, budget)) + 1)
