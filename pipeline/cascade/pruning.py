"""The best prunings of the quadtrees for several prices at once.

After Chou, Lookabaugh and Gray, "Optimal pruning with applications to tree-structured source coding and modeling"
(1989): for a price t per token the best tree is found bottom-up, J(n) = min(leaf, split, keep).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.quadtree import Quadtree, over_children, to_children
from foveate.pipeline.geometry import TOP_LEVEL, Mask

Flat = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Weighted squared errors per node, in quadtree order."""

    leaf: list[Flat]  # [level]: error of one token at that LOD; zeros for level 0
    kept: Flat | None  # level 0: error of spending no token; None where that is not allowed


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One pruning. Its masks may be changed by their owner."""

    leaves: list[Mask]  # [level]: nodes that become one token
    kept: Mask  # level 0: units inside that get no token

    @property
    def count(self) -> int:
        """Number of tokens."""
        return sum(int(np.count_nonzero(leaves)) for leaves in self.leaves)


@dataclass(frozen=True, slots=True, eq=False)
class Prunings:
    """The best trees for P ascending prices."""

    prices: Flat
    counts: NDArray[np.int32]  # [P]: tokens of each tree; never grows with the price
    bottom: Mask  # [P, level-0 nodes]: would be a token if no node above it were
    as_leaf: list[Mask]  # [level - 1][P, nodes]: better shown as one token than split

    def tree(self, quadtree: Quadtree, index: int) -> Tree:
        """The tree for ``prices[index]``."""
        active = np.ones(self.as_leaf[-1].shape[-1], np.bool_)
        leaves: list[Mask] = []
        for better in reversed(self.as_leaf):
            leaves.insert(0, active & better[index])
            active = to_children(active & ~better[index])
        tokens = active & self.bottom[index]
        return Tree([tokens, *leaves], active & quadtree.inside & ~tokens)


def prune(quadtree: Quadtree, costs: Costs, prices: Flat) -> Prunings:
    """Bottom-up over all levels, for all ``prices`` [P] together. Of equal costs the one with fewer tokens is taken."""
    price = prices[:, None]
    if costs.kept is None:
        bottom = np.broadcast_to(quadtree.inside, (len(prices), len(quadtree.inside)))
        cost = price * quadtree.units[1]
        tokens = np.broadcast_to(quadtree.units[1], cost.shape)
    else:
        bottom = price < costs.kept
        cost = over_children(np.minimum(price, costs.kept))
        tokens = over_children(bottom.astype(np.int32))
    as_leaf: list[Mask] = []
    for level in range(1, TOP_LEVEL + 1):
        if level > 1:
            cost, tokens = over_children(cost), over_children(tokens)
        leaf = costs.leaf[level] + price
        better = (leaf < cost) | ((leaf == cost) & (tokens > 1))
        cost, tokens = np.where(better, leaf, cost), np.where(better, np.int32(1), tokens)
        as_leaf.append(better)
    return Prunings(prices, tokens.sum(axis=-1, dtype=np.int32), bottom, as_leaf)
