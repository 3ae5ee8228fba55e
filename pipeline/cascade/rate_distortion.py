"""The default strategy: the quadtree with the least weighted squared error for the budget.

After Chou, Lookabaugh and Gray, "Optimal pruning with applications to tree-structured source coding and modeling"
(1989): for a price t per token the best tree is found bottom-up, and t is searched until the tokens fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Problem, Tokens, in_order
from foveate.pipeline.cascade.quadtree import Quadtree, over_children, to_children
from foveate.pipeline.geometry import TOP_LEVEL, Mask

Flat = NDArray[np.float32]

UNSEEN = np.float32(64.0**2 * 256)
"""Squared error of a cell of which the reader holds nothing: 64 grey values at each of its pixels."""

_PRICES = 8  # tried at once
_ROUNDS = 5  # of narrowing; 8 prices cut a bracket of 16 to one part in a thousand in four
_SLACK = 3  # tokens; a split adds three, so a tree may end this short of a budget of some size
_SLACK_SHARE = 64  # the slack is at most this fraction of the budget
_LEAST = 1e-3  # the lowest price that is tried; errors are sums of squares of 8-bit values
_FIRST_GUESS, _FIRST_SPREAD = 1e4, 1e4  # the first search spans 1 to 1e8


@dataclass(frozen=True, slots=True, eq=False)
class _Costs:
    """Weighted squared errors per node, in quadtree order."""

    leaf: list[Flat]  # [level]: error of one token at that LOD; level 0 has none
    kept: Flat | None  # level 0: error of spending no token; None where that is not allowed


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """The best tree for one price."""

    leaves: list[Mask]  # [level]: nodes that become one token
    kept: Mask  # level 0: units inside that get no token

    @property
    def count(self) -> int:
        return int(sum(int(leaves.sum()) for leaves in self.leaves))


class RateDistortion:
    """Searches the price from where the last frame's search ended."""

    def __init__(self, min_gain: float, merge: int = 1) -> None:
        self._min_gain = max(min_gain, _LEAST)
        self._merge = merge
        self._price = 0.0
        self._tree: Quadtree | None = None
        self._inside: Mask | None = None

    def reset(self) -> None:
        """Forget the last frame's price."""
        self._price = 0.0

    def allocate(self, problem: Problem) -> Tokens:
        """Tokens of LODs 0..4; see Strategy."""
        quadtree = self._quadtree(problem)
        budget = problem.budget // self._merge**2
        costs = self._costs(problem, quadtree, budget)
        price = self._search(quadtree, costs, budget)
        tree = _extract(quadtree, costs, price)
        if price > self._min_gain:
            _fill(quadtree, costs, tree, budget, self._min_gain)
        return self._tokens(quadtree, tree)

    def _quadtree(self, problem: Problem) -> Quadtree:
        inside = problem.geometry.inside
        if self._tree is None or inside is not self._inside:
            self._inside = inside
            self._tree = Quadtree(_merged_any(inside) if self._merge == 2 else inside)
            self.reset()
        return self._tree

    def _costs(self, problem: Problem, quadtree: Quadtree, budget: int) -> _Costs:
        def weighted(error: NDArray[np.float32]) -> Flat:
            product = error * problem.weight
            return np.asarray(quadtree.flat(_merged_sum(product) if self._merge == 2 else product), np.float32)

        leaf = [np.zeros_like(quadtree.inside, np.float32)]
        for level, error in enumerate(problem.errors, start=1):
            sums = weighted(error)
            for _ in range(level):
                sums = over_children(sums)
            leaf.append(sums)
        if problem.kept is not None:
            return _Costs(leaf, weighted(problem.kept))
        roots = int((quadtree.units[TOP_LEVEL] > 0).sum())
        # Where even one token per root is too many, the least valuable parts of the picture go without.
        return _Costs(leaf, weighted(np.full_like(problem.weight, UNSEEN)) if roots > budget else None)

    def _search(self, quadtree: Quadtree, costs: _Costs, budget: int) -> float:
        """The lowest price, not below min_gain, whose best tree fits the budget, or one close to it."""
        low, high, count = self._bracket(quadtree, costs, budget)
        enough = budget - min(_SLACK, budget // _SLACK_SHARE)
        for _ in range(_ROUNDS):
            if count >= enough or high <= self._min_gain:
                break
            prices = np.geomspace(low, high, _PRICES + 1, dtype=np.float32)[1:]
            counts = _counts(quadtree, costs, prices)
            fits = int(np.argmax(counts <= budget))
            low = float(prices[fits - 1]) if fits else low
            high, count = float(prices[fits]), int(counts[fits])
        self._price = high
        return high

    def _bracket(self, quadtree: Quadtree, costs: _Costs, budget: int) -> tuple[float, float, int]:
        """Two prices, too low and high enough for the budget, and the token count at the latter."""
        guess, spread = (self._price, 2.0) if self._price else (_FIRST_GUESS, _FIRST_SPREAD)
        low = self._min_gain
        while True:
            span = np.geomspace(max(guess / spread, low), max(guess * spread, 2 * low), _PRICES - 1)
            prices = np.concatenate([[low], span]).astype(np.float32)
            counts = _counts(quadtree, costs, prices)
            if counts[-1] <= budget:
                break
            low, guess = float(prices[-1]), guess * spread * spread
        fits = int(np.argmax(counts <= budget))
        return float(prices[max(fits - 1, 0)]), float(prices[fits]), int(counts[fits])

    def _tokens(self, quadtree: Quadtree, tree: _Tree) -> Tokens:
        chosen = [np.flatnonzero(leaves) for leaves in tree.leaves]
        lod = np.repeat(np.arange(TOP_LEVEL + 1, dtype=np.uint8), [len(nodes) for nodes in chosen])
        row = np.concatenate([quadtree.rows[level][nodes] for level, nodes in enumerate(chosen)])
        column = np.concatenate([quadtree.columns[level][nodes] for level, nodes in enumerate(chosen)])
        if self._merge == 2:
            lod = np.tile(lod, 4)
            row = np.concatenate([2 * row, 2 * row, 2 * row + 1, 2 * row + 1])
            column = np.concatenate([2 * column, 2 * column + 1, 2 * column, 2 * column + 1])
        return in_order(lod, row, column)


def _merged_sum(grid: NDArray[np.float32]) -> NDArray[np.float32]:
    rows = grid[0::2] + grid[1::2]
    return np.asarray(rows[:, 0::2] + rows[:, 1::2], np.float32)


def _merged_any(grid: Mask) -> Mask:
    rows = grid[0::2] | grid[1::2]
    return np.asarray(rows[:, 0::2] | rows[:, 1::2], np.bool_)


def _solve(quadtree: Quadtree, costs: _Costs, prices: Flat) -> tuple[NDArray[np.int32], list[Mask], NDArray[np.int32]]:
    """Bottom-up for several prices: tokens of each tree, nodes best shown as one token, tokens per level-0 node."""
    price = prices[:, None]
    if costs.kept is None:
        count = np.broadcast_to(quadtree.units[0], (len(prices), len(quadtree.inside)))
        cost = price * quadtree.units[1]
        split_count = np.broadcast_to(quadtree.units[1], cost.shape)
    else:
        count = (price < costs.kept).astype(np.int32)
        cost = over_children(np.minimum(price, costs.kept))
        split_count = over_children(count)
    bottom, as_leaf = count, []
    for level in range(1, TOP_LEVEL + 1):
        if level > 1:
            cost, split_count = over_children(cost), over_children(count)
        leaf = costs.leaf[level] + price
        better = (leaf < cost) | ((leaf == cost) & (split_count > 1))
        cost = np.where(better, leaf, cost)
        count = np.where(better, np.int32(1), split_count)
        as_leaf.append(better)
    return count.sum(axis=-1), as_leaf, bottom


def _counts(quadtree: Quadtree, costs: _Costs, prices: Flat) -> NDArray[np.int32]:
    return _solve(quadtree, costs, prices)[0]


def _extract(quadtree: Quadtree, costs: _Costs, price: float) -> _Tree:
    _, as_leaf, bottom = _solve(quadtree, costs, np.array([price], np.float32))
    active = np.ones(len(quadtree.rows[TOP_LEVEL]), np.bool_)
    leaves: list[Mask] = []
    for better in reversed(as_leaf):
        leaves.insert(0, active & better[0])
        active = to_children(active & ~better[0])
    tokens = active & (bottom[0] > 0)
    return _Tree([tokens, *leaves], active & quadtree.inside & ~tokens)


def _fill(quadtree: Quadtree, costs: _Costs, tree: _Tree, budget: int, min_gain: float) -> None:
    """Spend what is left over on the single best steps; equal costs make trees jump past the budget."""
    room = budget - tree.count
    while room > 0:
        steps = _steps(quadtree, costs, tree, room, min_gain)
        if not steps:
            break
        for level, node, extra in steps:
            if extra > room:
                break
            room -= extra
            _take(quadtree, tree, level, node)


def _steps(quadtree: Quadtree, costs: _Costs, tree: _Tree, room: int, min_gain: float) -> list[tuple[int, int, int]]:
    """(level, node, further tokens) of the steps that gain and fit, the best gain per token first."""
    found: list[tuple[float, int, int, int]] = []
    if costs.kept is not None:
        found += _best(costs.kept, tree.kept, np.ones(len(tree.kept), np.int32), room, (0, min_gain))
    for level in range(1, TOP_LEVEL + 1):
        gain = costs.leaf[level] - over_children(costs.leaf[level - 1])
        extra = over_children((quadtree.units[level - 1] > 0).astype(np.int32)) - 1
        found += _best(gain, tree.leaves[level], extra, room, (level, min_gain))
    found.sort()
    return [(level, node, extra) for _, level, node, extra in found]


def _best(
    gain: Flat, allowed: Mask, extra: NDArray[np.int32], room: int, limits: tuple[int, float]
) -> list[tuple[float, int, int, int]]:
    level, min_gain = limits
    nodes = np.flatnonzero(allowed & (extra > 0) & (extra <= room) & (gain > extra * min_gain))
    rate = gain[nodes] / extra[nodes]
    best = np.argsort(-rate, kind="stable")[:room]
    return [(-float(rate[i]), level, int(nodes[i]), int(extra[nodes[i]])) for i in best]


def _take(quadtree: Quadtree, tree: _Tree, level: int, node: int) -> None:
    if level == 0:
        tree.kept[node] = False
        tree.leaves[0][node] = True
        return
    tree.leaves[level][node] = False
    children = node + np.arange(4) * len(tree.leaves[level])
    tree.leaves[level - 1][children] = quadtree.units[level - 1][children] > 0
