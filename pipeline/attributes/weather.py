"""Rain and snow: changes all over the picture, in other cells in each frame."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from foveate.pipeline.geometry import Map, Mask

_BLOCK: Final = 4  # cells along the blocks that are looked at
_CALM: Final = 4  # one in so many blocks may change less
_LEAST: Final = 0.005  # share of a block's samples that must change
_AGO: Final = 2  # frames: a drop changes its cell twice, when it comes and when it has gone
_SAME: Final = 0.2  # correlation with the cells that changed then, from which on it is the scene that changes
_PER_CELL: Final = 8.0  # of the share that changes in a calm block: what drops change of a cell, at most
_MOST: Final = 0.5  # no drop changes more of a cell


class Weather:
    """Measures how much of a cell drops and flakes change. What moves, sways, or is panned over changes its own cells
    again and again; drops fall everywhere, and elsewhere in each frame.
    """

    def __init__(self) -> None:
        self._changed: deque[Mask | None] = deque(maxlen=_AGO)  # None: not all over the picture

    def update(self, difference: Map) -> float:
        """Advance by one frame: the share of a cell's samples up to which a change may be rain; 0 in fair weather.

        ``difference``: float32[grid], the share that changed since the frame before.
        """
        calm = _calm(difference)
        changed = difference > 0 if calm >= _LEAST else None
        before = self._changed[0] if len(self._changed) == _AGO else None
        self._changed.append(changed)
        if changed is None or before is None or correlation(changed, before) >= _SAME:
            return 0.0
        return min(_PER_CELL * calm, _MOST)

    def reset(self) -> None:
        """Begin with another scene."""
        self._changed.clear()


def _calm(difference: Map) -> float:
    """Share of the samples of a block that change, which all but the calmest quarter of the blocks exceed or reach."""
    rows, columns = (length // _BLOCK for length in difference.shape)
    blocks, calm = rows * columns, rows * columns // _CALM
    if np.count_nonzero(difference) < max(blocks - calm, 1):  # no change in more of them
        return 0.0
    whole = difference[: rows * _BLOCK, : columns * _BLOCK].reshape(rows, _BLOCK, columns, _BLOCK)
    return float(np.partition(whole.mean((1, 3)), calm, None)[calm]) if blocks else 0.0


def correlation(one: Mask, other: Mask) -> float:
    """Of two masks of one shape (Pearson's phi), in [-1, 1]; 1 where either is the same everywhere."""
    first, second, both = (np.count_nonzero(mask) / mask.size for mask in (one, other, one & other))
    spread = first * (1 - first) * second * (1 - second)
    return float((both - first * second) / spread**0.5) if spread else 1.0
