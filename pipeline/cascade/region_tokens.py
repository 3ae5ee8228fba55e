"""Tokens for each of several regions: the quadtree of least error, searched in each region by itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Problem, Tokens
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.regions import Budgeted, Region, RegionTimeline, budgeted
from foveate.pipeline.settings import Settings

_NONE: Final = Tokens(np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int32))


class RegionTokens(NamedTuple):
    """The tokens of all regions, coarse to fine and then row by row."""

    tokens: Tokens
    region: NDArray[np.int32]  # [K]: Budgeted.number of each token's region


class FrameRegions:
    """The regions of the frames of one size, one frame after another."""

    def __init__(self, timeline: RegionTimeline, geometry: Geometry, settings: Settings) -> None:
        self._timeline, self._geometry = timeline, geometry
        self._each, self._merge = settings.region_tokens, settings.allocation.merge
        self._regions: tuple[Region, ...] = ()
        self._budgeted: list[Budgeted] = []

    def advance(self, frame: int) -> bool:
        """Go on to the frame of this number. Returns whether its regions are others than before."""
        before, self._regions = self._regions, self._timeline.at(frame)
        return self._regions != before

    def divide(self, budget: int) -> int:
        """Give each region its part of the frame's budget. Returns the smallest; without regions, all of it."""
        self._budgeted = budgeted(self._regions, self._geometry, self._each, budget, self._merge)
        return min((region.budget for region in self._budgeted), default=budget)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the frame's regions, also of those without tokens."""
        return tuple(region.name for region in self._regions)

    def allocate(self, problem: Problem, allocate: Callable[[Problem], Tokens]) -> RegionTokens:
        """The tokens of each region, which ``allocate`` chooses within its budget.

        Errors outside the region count nothing, and in cells on its border in part. In frame memory the tokens cover
        it, at LODs that follow from its size and budget. In stream memory they go where the reader's picture of it is
        wrong. Regions do not know of each other: where they overlap, each has tokens of its own.
        """
        found = [allocate(_within(problem, region)) for region in self._budgeted]
        numbers = [
            np.full(len(each.lod), part.number, np.int32) for part, each in zip(self._budgeted, found, strict=True)
        ]
        lod, row, column = (np.concatenate(columns) for columns in zip(_NONE, *found, strict=True))
        tokens = Tokens(lod.astype(np.uint8, copy=False), row, column)
        order = _order(tokens, self._merge)
        region = np.concatenate([np.empty(0, np.int32), *numbers])
        return RegionTokens(Tokens(tokens.lod[order], tokens.row[order], tokens.column[order]), region[order])


def _within(problem: Problem, region: Budgeted) -> Problem:
    """The problem of one region."""
    weight = problem.weight * region.share
    return replace(problem, budget=region.budget, weight=weight, region=region.share > 0)


def _order(tokens: Tokens, merge: int) -> NDArray[np.intp]:
    """The order of a Selection: groups coarse to fine, then row by row, and of equal ones that of their regions."""
    size = merge**2
    first = slice(None, None, size)
    groups = np.lexsort((tokens.column[first], tokens.row[first], -tokens.lod[first].astype(np.int8)))
    return np.asarray((groups[:, None] * size + np.arange(size)).ravel(), np.intp)
