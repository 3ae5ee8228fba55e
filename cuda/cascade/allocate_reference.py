"""The price search and the fill of allocate.cu, obvious and slow, over the prunings of pipeline.cascade.pruning."""

from __future__ import annotations

import numpy as np

from foveate.cuda.cascade.allocate import HIGHEST, LOWEST, first_price, lattice
from foveate.pipeline.cascade.pruning import Costs, Tree, prune
from foveate.pipeline.cascade.quadtree import Quadtree, over_children
from foveate.pipeline.geometry import TOP_LEVEL

_LEAST_GAIN = 2.0**-10


def allocate(quadtree: Quadtree, costs: Costs, budget: int, min_gain: float) -> tuple[Tree, int]:
    """The tree of at most ``budget`` tokens, and the index of its price in the lattice."""
    prices, start = lattice(), first_price(min_gain)
    low, high = start, HIGHEST - LOWEST
    while low < high:
        middle = (low + high) // 2
        if prune(quadtree, costs, prices[middle : middle + 1]).counts[0] > budget:
            low = middle + 1
        else:
            high = middle
    tree = prune(quadtree, costs, prices[low : low + 1]).tree(quadtree, 0)
    if low > start:
        _fill(quadtree, costs, tree, budget, max(min_gain, _LEAST_GAIN))
    return tree, low


def _fill(quadtree: Quadtree, costs: Costs, tree: Tree, budget: int, min_gain: float) -> None:
    """The step with the greatest gain per token, again and again; of equals the lowest level, then the lowest node."""
    while (room := budget - tree.count) > 0:
        best: tuple[np.float32, int, int] | None = None
        for level in range(0 if costs.kept is not None else 1, TOP_LEVEL + 1):
            if level == 0:
                assert costs.kept is not None
                gain, allowed = costs.kept, tree.kept
                extra = np.ones(len(gain), np.int32)
            else:
                gain, allowed = costs.leaf[level] - over_children(costs.leaf[level - 1]), tree.leaves[level]
                extra = over_children((quadtree.units[level - 1] > 0).astype(np.int32)) - 1
            allowed = allowed & (extra >= 1) & (extra <= room) & (gain > extra * min_gain)
            if not allowed.any():
                continue
            rate = np.where(allowed, gain / np.maximum(extra, 1).astype(np.float32), np.float32(-1.0))
            node = int(np.argmax(rate))
            if best is None or rate[node] > best[0]:
                best = rate[node], level, node
        if best is None:
            return
        _take(quadtree, tree, *best[1:])


def _take(quadtree: Quadtree, tree: Tree, level: int, node: int) -> None:
    if level == 0:
        tree.kept[node] = False
        tree.leaves[0][node] = True
        return
    tree.leaves[level][node] = False
    children = node + np.arange(4) * len(tree.leaves[level])
    tree.leaves[level - 1][children] = quadtree.units[level - 1][children] > 0
