"""The default strategy: the quadtree with the least weighted squared error for the budget.

The best tree for a price is found by ``prune``; the price is searched until the tokens fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Problem, Tokens, in_order, over_groups
from foveate.pipeline.cascade.pruning import Costs, Flat, Prunings, Tree, prune
from foveate.pipeline.cascade.quadtree import Quadtree, over_children, places_of_children
from foveate.pipeline.geometry import TOP_LEVEL, Mask

UNSEEN = np.float32(64.0**2 * 256)
"""Squared error of a cell of which the reader holds nothing: 64 grey values at each of its pixels."""

_PRICES = 7  # tried at once
_ROUNDS = 12  # of narrowing at most; each cuts the bracket's logarithm to an eighth
_FINEST = 1.0001  # a bracket this narrow is not narrowed further
_SLACK = 3  # tokens; a split adds three, so a tree may end this short of a budget of some size
_SLACK_SHARE = 64  # the slack is at most this fraction of the budget
_LEAST = 1e-3  # the lowest price that is tried; errors are sums of squares of 8-bit values
_MOST = 1e15  # more than the squared errors of any picture add up to
_FIRST_GUESS, _FIRST_SPREAD = 1e4, 1e4  # the first search spans 1 to 1e8
_SPREAD = 1.1  # around the last frame's price
_STEPS = np.linspace(0.0, 1.0, _PRICES, dtype=np.float64)
_INNER_STEPS = np.linspace(0.0, 1.0, _PRICES + 2, dtype=np.float64)[1:-1]


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
        prunings, index = self._search(quadtree, costs, budget)
        self._price = float(prunings.prices[index])
        tree = prunings.tree(quadtree, index)
        if self._price > self._min_gain:
            _fill(quadtree, costs, tree, budget, self._min_gain)
        return self._tokens(quadtree, tree)

    def _quadtree(self, problem: Problem) -> Quadtree:
        inside = problem.geometry.inside
        if self._tree is None or inside is not self._inside:
            self._inside = inside
            self._tree = Quadtree(over_groups(inside.astype(np.float32)) > 0 if self._merge == 2 else inside)
            self.reset()
        return self._tree

    def _costs(self, problem: Problem, quadtree: Quadtree, budget: int) -> Costs:
        def weighted(error: NDArray[np.float32]) -> Flat:
            product = error * problem.weight
            return np.asarray(quadtree.flat(over_groups(product) if self._merge == 2 else product), np.float32)

        leaf = [np.zeros_like(quadtree.inside, np.float32)]
        for level, error in enumerate(problem.errors, start=1):
            sums = weighted(error)
            for _ in range(level):
                sums = over_children(sums)
            leaf.append(sums)
        if problem.kept is not None:
            return Costs(leaf, weighted(problem.kept))
        roots = int((quadtree.units[TOP_LEVEL] > 0).sum())
        # Where even one token per root is too many, the least valuable parts of the picture go without.
        return Costs(leaf, weighted(np.full_like(problem.weight, UNSEEN)) if roots > budget else None)

    def _search(self, quadtree: Quadtree, costs: Costs, budget: int) -> tuple[Prunings, int]:
        """The lowest price, not below min_gain, whose best tree fits the budget, or one close to it: which of which."""
        enough = budget - min(_SLACK, budget // _SLACK_SHARE)
        guess, spread = (self._price, _SPREAD) if self._price else (_FIRST_GUESS, _FIRST_SPREAD)
        low, high = 0.0, np.inf  # too cheap, and dear enough
        best: tuple[Prunings, int] | None = None
        prices = _between(guess / spread, guess * spread, _STEPS)
        for _ in range(_ROUNDS):
            prunings = prune(quadtree, costs, np.clip(prices, self._min_gain, _MOST).astype(np.float32))
            fits = int(np.searchsorted(-prunings.counts, -budget))  # the first price whose tokens fit
            if fits > 0:
                low = float(prunings.prices[fits - 1])
            if fits < _PRICES:
                best, high = (prunings, fits), float(prunings.prices[fits])
                if prunings.counts[fits] >= enough or high <= max(low * _FINEST, self._min_gain):
                    break
            spread = min(spread * spread, _FIRST_SPREAD)
            if not low:
                prices = _between(high / spread**2, high, _STEPS)
            elif high == np.inf:
                prices = _between(low, low * spread**2, _STEPS)
            else:
                prices = _between(low, high, _INNER_STEPS)
        assert best is not None  # for any price above all errors the count is within the budget
        return best

    def _tokens(self, quadtree: Quadtree, tree: Tree) -> Tokens:
        chosen = [np.flatnonzero(leaves) for leaves in tree.leaves]
        lod = np.repeat(np.arange(TOP_LEVEL + 1, dtype=np.uint8), [len(nodes) for nodes in chosen])
        row = np.concatenate([quadtree.rows[level][nodes] for level, nodes in enumerate(chosen)])
        column = np.concatenate([quadtree.columns[level][nodes] for level, nodes in enumerate(chosen)])
        if self._merge == 2:
            lod = np.tile(lod, 4)
            row, column = places_of_children(row, column)
        return in_order(lod, row, column)


def _between(low: float, high: float, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Prices from ``low`` to ``high`` with equal ratios, at ``steps`` of the way."""
    return low * (high / low) ** steps


def _fill(quadtree: Quadtree, costs: Costs, tree: Tree, budget: int, min_gain: float) -> None:
    """Spend what is left over on the single best steps; equal costs make trees jump past the budget."""
    room = budget - tree.count
    least = 1 if costs.kept is not None else _SLACK  # tokens that a step takes, but for a few at the border
    while room >= least:
        steps = _steps(quadtree, costs, tree, room, min_gain)
        if not steps:
            break
        for level, node, extra in steps:
            if extra > room:
                break
            room -= extra
            _take(quadtree, tree, level, node)


def _steps(quadtree: Quadtree, costs: Costs, tree: Tree, room: int, min_gain: float) -> list[tuple[int, int, int]]:
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


def _take(quadtree: Quadtree, tree: Tree, level: int, node: int) -> None:
    if level == 0:
        tree.kept[node] = False
        tree.leaves[0][node] = True
        return
    tree.leaves[level][node] = False
    children = node + np.arange(4) * len(tree.leaves[level])
    tree.leaves[level - 1][children] = quadtree.units[level - 1][children] > 0
