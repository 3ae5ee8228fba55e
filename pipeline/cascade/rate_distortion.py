"""The default strategy: the quadtree with the least weighted squared error for the budget.

For a price per token the best tree is found bottom-up (Chou, Lookabaugh and Gray, "Optimal pruning with applications to
tree-structured source coding and modeling", 1989); the price is the lowest of a fixed list whose tokens fit the budget,
so that a frame's tokens depend on that frame only.

No tree with as many tokens or fewer leaves a smaller error (Everett, "Generalized Lagrange multiplier method", 1963);
in stream memory that includes every tree that frame memory would choose. Tokens left over refine the tree one step at a
time. The errors of coarse tokens are estimates, see native/leaf_errors.c; those of the reader's picture are exact.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Problem, Tokens, any_of_groups, in_groups
from foveate.pipeline.cascade.rate import OCTAVES
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.native.pruning import Allocator, Costs, Prices
from foveate.pipeline.quadtree import Quadtree
from foveate.pipeline.spec import errors

UNSEEN = np.float32(errors.UNSEEN)

PER_OCTAVE = 512  # prices per doubling
LEAST, MOST = -10, 50  # the first and last price as powers of 2; no picture's squared errors add up to the last


@cache
def prices() -> NDArray[np.float32]:
    """The prices that may be chosen: 2**LEAST to 2**MOST, PER_OCTAVE to each doubling. float32[n], ascending."""
    return (2.0 ** (np.arange(LEAST * PER_OCTAVE, MOST * PER_OCTAVE + 1) / PER_OCTAVE)).astype(np.float32)


def first_price(min_gain: float) -> int:
    """Index of the lowest price that is not below ``min_gain``."""
    if min_gain <= 2.0**LEAST:
        return 0
    return min(math.ceil(PER_OCTAVE * math.log2(min_gain)) - LEAST * PER_OCTAVE, len(prices()) - 1)


def first_price_in_debt(least: int, debt: float) -> int:
    """Index of the lowest price that may be chosen with a debt in [0, 1], a share of the greatest; see rate.py."""
    return min(least + int(OCTAVES * PER_OCTAVE * debt), len(prices()) - 1)


class RateDistortion:
    """The search for the price starts at the last frame's, which affects its time and not its result."""

    def __init__(self, min_gain: float, merge: int = 1) -> None:
        self._min_gain = max(min_gain, 2.0**LEAST)
        self._least = first_price(min_gain)
        self._merge = merge
        self._price = self._least
        self._tree: Quadtree | None = None
        self._allocator: Allocator | None = None  # of the whole picture
        self._geometry: Geometry | None = None

    def allocate(self, problem: Problem) -> Tokens:
        """Tokens of LOD 0 up to the coarsest that ``problem.errors`` has; see Strategy.

        Without ``kept`` they cover the whole picture, or its ``region``. Raises ValueError where the coarsest are too
        many for that.
        """
        budget, top = problem.budget // self._merge**2, len(problem.errors)
        if problem.kept is None and top < problem.geometry.top(budget, self._merge):
            needed = problem.geometry.top(budget, self._merge)
            raise ValueError(f"errors must go up to LOD {needed} to cover the picture with {budget} units, got {top}")
        least, min_gain = self._least, self._min_gain
        if problem.debt:
            least = first_price_in_debt(least, problem.debt)
            min_gain = float(prices()[least])
        costs = Costs(problem.weight, problem.errors, problem.kept)
        found = Prices(prices(), least, self._price)
        chosen = self._allocator_for(problem).allocate(costs, budget, found, min_gain)
        self._price = chosen.price
        return in_groups(Tokens(chosen.lod, chosen.row, chosen.column), self._merge, problem.geometry)

    @property
    def price(self) -> float:
        """Price per token of the last frame: the weighted squared error that every token of it had to remove."""
        return float(prices()[self._price])

    def _allocator_for(self, problem: Problem) -> Allocator:
        geometry, merge = problem.geometry, self._merge
        if self._tree is None or geometry is not self._geometry:
            self._geometry, self._allocator = geometry, None
            self._tree = Quadtree(geometry.units(merge))
        if problem.region is not None:
            return Allocator(self._tree.within(any_of_groups(problem.region, merge)), geometry.grid, merge)
        if self._allocator is None:
            self._allocator = Allocator(self._tree, geometry.grid, merge)
        return self._allocator
