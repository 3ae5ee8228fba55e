"""Detail as the eye spends it: full at the point looked at, less with the distance from it.

Cortical magnification falls with the eccentricity e as M(e) = M0 / (e + e0) (Daniel and Whitteridge 1961; in this form
Schwartz 1980). Here M is the resolution in samples per pixel, and e the distance in half diagonals of the picture.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Problem, Tokens, in_order, over_groups
from foveate.pipeline.cascade.quadtree import Quadtree, places_of_children
from foveate.pipeline.geometry import CELL, TOP_LEVEL, Mask


class _Splits(NamedTuple):
    """Every node of LOD 4..1, in the order in which a growing M0 splits them: parents come before their children."""

    place: NDArray[np.intp]  # index among the nodes, from LOD 4 down
    most: int  # how many may be split: M0 does not exceed its setting
    tokens: NDArray[np.int64]  # units of tokens with none, the first, the first two ... split


class Foveated:
    """Tokens of LODs 0..4 that tile the picture. M0 is as large as the budget allows, or as the setting ``m0``."""

    def __init__(self, m0: float | None, e0: float, min_gain: float, merge: int = 1) -> None:
        self._m0 = np.inf if m0 is None else m0
        self._e0 = e0
        self._min_gain = min_gain
        self._merge = merge
        self._inside: Mask | None = None
        self._tree = Quadtree(np.zeros((1, 1), np.bool_))

    def allocate(self, problem: Problem) -> Tokens:
        """Fine around the gaze, else the cell most relevant to a query, else the centre; see Strategy."""
        self._look_at_size(problem.geometry.inside)
        distance = self._distances(problem)
        splits = self._splits(distance)
        budget = problem.budget // self._merge**2
        enough = int(np.searchsorted(splits.tokens[: splits.most + 1], budget, side="right")) - 1
        wanted = None if problem.kept is None else self._wins(problem)
        if wanted is not None:
            enough = self._more(splits, max(enough, 0), budget, wanted)
        leaves = self._leaves(splits, max(enough, 0), wanted)
        if sum(int(np.count_nonzero(leaf)) for leaf in leaves) > budget:  # not even one token for every root
            nearest = np.flatnonzero(leaves[TOP_LEVEL])
            nearest = nearest[np.argsort(distance[TOP_LEVEL][nearest], kind="stable")]
            leaves[TOP_LEVEL][nearest[budget:]] = False
        return self._tokens(leaves)

    def _look_at_size(self, inside: Mask) -> None:
        if inside is not self._inside:
            self._inside = inside
            self._tree = Quadtree(over_groups(inside.astype(np.float32)) > 0 if self._merge == 2 else inside)

    def _distances(self, problem: Problem) -> list[NDArray[np.float64]]:
        """Of the nodes of LOD 0..4: from the fixation point to the nearest point of each, in half diagonals."""
        width, height = problem.geometry.width, problem.geometry.height
        x, y = fixation(problem)
        found = []
        for lod, (row, column) in enumerate(self._tree.places):
            side = CELL * self._merge << lod
            across = np.maximum(np.maximum(column * side - x, x - (column + 1) * side), 0)
            down = np.maximum(np.maximum(row * side - y, y - (row + 1) * side), 0)
            found.append(np.hypot(across, down) / (np.hypot(width, height) / 2))
        return found

    def _splits(self, distance: list[NDArray[np.float64]]) -> _Splits:
        """A node of LOD l is too coarse where M(e) exceeds 2**-l, which is where M0 exceeds (e + e0) 2**-l."""
        lods = range(TOP_LEVEL, 0, -1)
        needed = np.concatenate([(distance[lod] + self._e0) / 2**lod for lod in lods])
        units = self._tree.units
        children = [np.count_nonzero(units[lod - 1].reshape(4, -1), axis=0) for lod in lods]
        real = np.flatnonzero(np.concatenate([units[lod] for lod in lods]))
        place = real[np.argsort(needed[real], kind="stable")]
        grown = np.cumsum(np.concatenate(children)[place] - 1)
        roots = np.count_nonzero(units[TOP_LEVEL])
        return _Splits(place, int(np.count_nonzero(needed[place] < self._m0)), np.concatenate([[roots], roots + grown]))

    def _more(self, splits: _Splits, least: int, budget: int, wanted: list[Mask]) -> int:
        """How many may be split where only the ``wanted`` nodes cost a token; found by halving, at least ``least``."""
        low, high = least, splits.most + 1
        while high - low > 1:
            middle = (low + high) // 2
            count = sum(int(np.count_nonzero(leaf)) for leaf in self._leaves(splits, middle, wanted))
            low, high = (middle, high) if count <= budget else (low, middle)
        return low

    def _leaves(self, splits: _Splits, count: int, wanted: list[Mask] | None) -> list[Mask]:
        """bool per node of LOD 0..4: the tree with the first ``count`` nodes split, what is not wanted left out."""
        flags = np.zeros(sum(len(units) for units in self._tree.units[1:]), np.bool_)
        flags[splits.place[:count]] = True
        ends = np.cumsum([len(units) for units in self._tree.units[:0:-1]])[:-1]
        split = [*np.split(flags, ends), np.zeros(len(self._tree.units[0]), np.bool_)][::-1]
        leaves: list[Mask] = []
        reached = np.ones(len(split[TOP_LEVEL]), np.bool_)
        for lod in range(TOP_LEVEL, -1, -1):
            leaf = reached & ~split[lod] & (self._tree.units[lod] > 0)
            leaves.insert(0, leaf if wanted is None else leaf & wanted[lod])
            reached = np.tile(reached & split[lod], 4)
        return leaves

    def _wins(self, problem: Problem) -> list[Mask]:
        """bool per node of LOD 0..4: showing it there takes ``min_gain`` per token from what the reader lacks."""
        assert problem.kept is not None
        lost = self._over_nodes(problem.kept * problem.weight)
        left = [np.zeros_like(lost[0])]
        left += [self._over_nodes(error * problem.weight)[lod + 1] for lod, error in enumerate(problem.errors)]
        gain = self._min_gain * self._merge**2
        return [before - after > gain for before, after in zip(lost, left, strict=True)]

    def _over_nodes(self, values: NDArray[np.float32]) -> list[NDArray[np.float64]]:
        """Sums of float32[grid] over the nodes of LOD 0..4."""
        flat = (over_groups(values) if self._merge == 2 else values).ravel().astype(np.float64)
        sums = [np.where(self._tree.source < 0, 0.0, flat[self._tree.source])]
        for _ in range(TOP_LEVEL):
            sums.append(sums[-1].reshape(4, -1).sum(axis=0))
        return sums

    def _tokens(self, leaves: list[Mask]) -> Tokens:
        lods, rows, columns = [], [], []
        for lod, (leaf, (row, column)) in enumerate(zip(leaves, self._tree.places, strict=True)):
            row, column = row[leaf], column[leaf]
            if self._merge == 2:
                row, column = places_of_children(row, column)
            lods.append(np.full(len(row), lod, np.uint8))
            rows.append(row)
            columns.append(column)
        return in_order(np.concatenate(lods), np.concatenate(rows), np.concatenate(columns))


def fixation(problem: Problem) -> tuple[float, float]:
    """The point looked at, in pixels: the gaze, else the centre of the cell that a query finds, else the middle."""
    if problem.gaze is not None:
        return problem.gaze
    found = problem.participation
    if found is None or not (found * problem.geometry.inside).any():
        return problem.geometry.width / 2, problem.geometry.height / 2
    row, column = divmod(int(np.argmax(found * problem.geometry.inside)), found.shape[1])
    return (column + 0.5) * CELL, (row + 0.5) * CELL
