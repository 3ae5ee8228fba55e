"""Levels coarser than a cell, for the coarsest tokens of large pictures with small budgets.

They are computed from level 4 when needed. A sample of level l + 1 is the mean of 2x2 samples of level l, whose last
row or column is repeated if their number is odd.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.coverage import on_cells
from foveate.pipeline.cpu.levels import CHROMA_WEIGHT
from foveate.pipeline.geometry import CELL, TOP_LEVEL, Map

Planes = tuple[Map, Map, Map]  # luma, Cb, Cr of one level


class UpperLevels:
    """Levels above TOP_LEVEL, up to ``top``; none where that is TOP_LEVEL."""

    def __init__(self, colours: Planes, top: int) -> None:
        """``colours`` are the samples of TOP_LEVEL, float32[grid] each, one per cell."""
        self._planes = [colours]
        for _ in range(top - TOP_LEVEL):
            luma, cb, cr = map(halved, self._planes[-1])
            self._planes.append((luma, cb, cr))

    def planes(self, level: int) -> Planes:
        """The samples of ``level``, TOP_LEVEL to ``top``."""
        return self._planes[level - TOP_LEVEL]

    def errors(self, errors: Sequence[Map]) -> tuple[Map, ...]:
        """``errors`` of levels 1..TOP_LEVEL, float32[grid] each, and those of all levels up to ``top``.

        As below TOP_LEVEL (native/leaf_errors.c), each level adds the squared difference between the one below and its
        own bilinear enlargement, here at each of a cell's pixels; planes count as in pipeline.cpu.levels.
        """
        grid, known = self._planes[0][0].shape, list(errors)
        for steps, (below, planes) in enumerate(pairwise(self._planes)):
            pairs = zip(below, planes, strict=True)
            luma, cb, cr = ((fine - doubled(coarse, fine.shape)) ** 2 for fine, coarse in pairs)
            off = luma + np.float32(CHROMA_WEIGHT) * cb + np.float32(CHROMA_WEIGHT) * cr
            known.append(known[-1] + np.float32(CELL * CELL) * on_cells(np.asarray(off, np.float32), steps, grid))
        return tuple(known)


def halved(samples: Map) -> Map:
    """Means of 2x2 samples, the last row and column repeated where their number is odd: float32[h, w]."""
    rows, columns = samples.shape
    even: NDArray[np.float32] = np.pad(samples, ((0, rows % 2), (0, columns % 2)), mode="edge")
    upper, lower = even[0::2], even[1::2]
    return np.asarray(
        (upper[:, 0::2] + upper[:, 1::2] + lower[:, 0::2] + lower[:, 1::2]) * np.float32(0.25), np.float32
    )


def doubled(samples: Map, shape: tuple[int, ...]) -> Map:
    """``samples`` enlarged bilinearly by 2, the edge repeated, and cut to ``shape``: float32."""
    for axis, length in enumerate(shape):
        at = np.arange(length)
        beside = np.clip(at // 2 + np.where(at % 2, 1, -1), 0, samples.shape[axis] - 1)
        near, far = samples.take(at // 2, axis), samples.take(beside, axis)
        samples = near * np.float32(0.75) + far * np.float32(0.25)
    return samples
