"""Foveated allocation: full detail at the fixation point, less with the distance from it.

Cortical magnification falls with the eccentricity e as M(e) = M0 / (e + e0) (Daniel and Whitteridge 1961; in this form
Schwartz 1980). Here M is the resolution in samples per pixel, and e the distance in half diagonals of the picture.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Problem, Tokens, in_groups, in_order, over_groups
from foveate.pipeline.geometry import CELL, Geometry, Mask
from foveate.pipeline.quadtree import Quadtree
from foveate.pipeline.spec.foveated import HALVINGS

Values = NDArray[np.float64]


class _Splits(NamedTuple):
    """All nodes of LOD top..1, in the order in which a growing M0 splits them: parents before their children."""

    place: NDArray[np.intp]  # index among the nodes, from the top down
    most: int  # nodes that may be split: M0 is at most that of the settings
    tokens: NDArray[np.int64]  # tokens, in units, with none, the first, the first two ... split


class Foveated:
    """Tokens of LOD 0 up to the coarsest LOD of ``problem.errors``, at which the budget must cover the picture.

    M0 is as large as the budget allows, at most ``m0``. In stream memory, where only some tokens are emitted, it is the
    M0 whose emitted tokens reduce the weighted error of the reader's picture most.
    """

    def __init__(self, m0: float | None, e0: float, min_gain: float, merge: int = 1) -> None:
        self._m0 = np.inf if m0 is None else m0
        self._e0 = e0
        self._min_gain = min_gain
        self._merge = merge
        self._geometry: Geometry | None = None
        self._tree = Quadtree(np.zeros((1, 1), np.bool_))
        self._top = 0  # LOD of the coarsest tokens

    def allocate(self, problem: Problem) -> Tokens:
        """Finest at the gaze, else at the cell most relevant to a query, else at the centre; see Strategy."""
        self._resize(problem.geometry)
        self._top = min(len(problem.errors), len(self._tree.units) - 1)
        splits = self._splits(self._distances(problem))
        budget = problem.budget // self._merge**2
        enough = max(int(np.searchsorted(splits.tokens[: splits.most + 1], budget, side="right")) - 1, 0)
        if problem.kept is None:
            leaves = self._leaves(splits, enough)
        else:
            leaves = self._best_leaves(splits, enough, budget, self._gains(problem))
        return in_groups(self._nodes(leaves), self._merge, problem.geometry)

    def _resize(self, geometry: Geometry) -> None:
        if geometry is not self._geometry:
            self._geometry = geometry
            self._tree = Quadtree(geometry.units(self._merge))

    def _distances(self, problem: Problem) -> list[Values]:
        """Distance of each node of LOD 0..top from the fixation point, in half diagonals; 0 inside the node."""
        width, height = problem.geometry.width, problem.geometry.height
        x, y = fixation(problem)
        found = []
        for lod, (row, column) in enumerate(self._tree.places[: self._top + 1]):
            side = CELL * self._merge << lod
            across = np.maximum(np.maximum(column * side - x, x - (column + 1) * side), 0)
            down = np.maximum(np.maximum(row * side - y, y - (row + 1) * side), 0)
            found.append(np.sqrt(across * across + down * down) / (np.hypot(width, height) / 2))
        return found

    def _splits(self, distance: list[Values]) -> _Splits:
        """A node of LOD l is split if M(e) exceeds 2**-l, that is if M0 exceeds (e + e0) 2**-l."""
        lods = range(self._top, 0, -1)
        needed = np.concatenate([(distance[lod] + self._e0) / 2**lod for lod in lods])
        units = self._tree.units
        children = [self._tree.over_children((units[lod - 1] > 0).astype(np.int64), lod) for lod in lods]
        real = np.flatnonzero(np.concatenate([units[lod] for lod in lods]))
        place = real[np.argsort(needed[real], kind="stable")]
        grown = np.cumsum(np.concatenate(children)[place] - 1)
        roots = np.count_nonzero(units[self._top])
        return _Splits(place, int(np.count_nonzero(needed[place] < self._m0)), np.concatenate([[roots], roots + grown]))

    def _best_leaves(self, splits: _Splits, least: int, budget: int, gains: NDArray[np.float32]) -> list[Mask]:
        """The ``budget`` best leaves of a tree, each with a gain of more than ``min_gain`` per token.

        Of several trees with at least ``least`` nodes split, the one whose best leaves have the greatest total gain.
        """
        most, best = -1.0, np.zeros(0, np.intp)
        worthwhile = gains > np.float32(self._min_gain * self._merge**2)
        for count in sizes_of_trees(least, splits.most):
            at = np.flatnonzero(np.concatenate(self._leaves(splits, count)) & worthwhile)
            if len(at) > budget:
                at = at[np.argsort(-gains[at], kind="stable")[:budget]]
            gained = float(gains[at].sum(dtype=np.float64))
            if gained > most:
                most, best = gained, at
        chosen = np.zeros(len(gains), np.bool_)
        chosen[best] = True
        return np.split(chosen, np.cumsum([len(level) for level in self._tree.units[: self._top]]))

    def _leaves(self, splits: _Splits, count: int) -> list[Mask]:
        """bool per node of LOD 0..top: the tree with the first ``count`` nodes split."""
        units = self._tree.units[: self._top + 1]
        flags = np.zeros(sum(len(level) for level in units[1:]), np.bool_)
        flags[splits.place[:count]] = True
        ends = np.cumsum([len(level) for level in units[:0:-1]])[:-1]
        split = [*np.split(flags, ends), np.zeros(len(units[0]), np.bool_)][::-1]
        leaves: list[Mask] = []
        reached = np.ones(len(units[-1]), np.bool_)
        for lod in range(self._top, -1, -1):
            leaves.insert(0, reached & ~split[lod] & (units[lod] > 0))
            if lod:
                reached = self._tree.to_children(reached & split[lod], lod)
        return leaves

    def _gains(self, problem: Problem) -> NDArray[np.float32]:
        """By how much a token on each node reduces the weighted error of the reader's picture, from LOD 0 on."""
        assert problem.kept is not None
        lost = self._over_nodes(problem.kept * problem.weight)
        left = [np.zeros_like(lost[0])]
        errors = problem.errors[: self._top]
        left += [self._over_nodes(error * problem.weight)[lod] for lod, error in enumerate(errors, 1)]
        return np.concatenate([before - after for before, after in zip(lost, left, strict=True)])

    def _over_nodes(self, values: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Sums of float32[grid] over the nodes of LOD 0..top, in the order of additions of the other strategies."""
        flat = over_groups(values, self._merge).ravel()
        sums = [np.where(self._tree.source < 0, np.float32(0), flat[self._tree.source])]
        for lod in range(1, self._top + 1):
            sums.append(self._tree.over_children(sums[-1], lod))
        return sums

    def _nodes(self, leaves: list[Mask]) -> Tokens:
        """The leaves as tokens, in order."""
        places = [(row[leaf], column[leaf]) for leaf, (row, column) in zip(leaves, self._tree.places, strict=False)]
        lods = np.arange(len(leaves), dtype=np.uint8).repeat([len(row) for row, _ in places])
        rows, columns = (np.concatenate([place[axis] for place in places]) for axis in (0, 1))
        return in_order(lods, rows, columns)


def sizes_of_trees(least: int, most: int) -> list[int]:
    """Numbers of nodes to split, ascending: from ``least`` to ``most`` at equal ratios of one more than these."""
    sizes = [least + 1.0, most + 1.0]
    for _ in range(HALVINGS):
        between = [math.sqrt(low * high) for low, high in pairwise(sizes)]
        sizes = [size for pair in zip(sizes, [*between, 0.0], strict=True) for size in pair][:-1]
    return sorted({int(size) - 1 for size in sizes})


def fixation(problem: Problem) -> tuple[float, float]:
    """The fixation point in pixels: the gaze, else the centre of the cell most relevant to a query, else the centre."""
    if problem.gaze is not None:
        return problem.gaze
    found = problem.participation
    if found is None or not (found * problem.geometry.inside).any():
        return problem.geometry.width / 2, problem.geometry.height / 2
    row, column = divmod(int(np.argmax(found * problem.geometry.inside)), found.shape[1])
    return (column + 0.5) * CELL, (row + 0.5) * CELL
