"""The reader's picture: what a streaming VLM holds after all tokens emitted so far, and how wrong that is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.coverage import cells_under, groups
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.cascade.rate_distortion import UNSEEN
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.cpu.sampling import Index
from foveate.pipeline.cpu.upper import UpperLevels
from foveate.pipeline.geometry import CELL, CELLS_PER_TILE, TOP_LEVEL, Geometry, Mask, as_blocks
from foveate.pipeline.native.paint import paint_tokens, paint_upper
from foveate.pipeline.native.reader import reader_error

_NEVER_SEEN = 255  # coarser than any LOD


class Reader:
    """Painted by every token (its level enlarged bilinearly), compared with what the texture holds."""

    def __init__(self, geometry: Geometry, subsampled: bool) -> None:
        self._geometry = geometry
        rows, columns = (cells * CELL for cells in geometry.span)
        bases = (0, 1, 1) if subsampled else (0, 0, 0)
        self.planes = [np.zeros((rows >> base, columns >> base), np.uint8) for base in bases]
        self.seen = np.zeros(geometry.grid, np.bool_)  # cells of which the reader holds anything
        self.lod = np.full(geometry.grid, _NEVER_SEEN, np.uint8)  # at which the reader saw each cell last
        self.error = np.full(geometry.grid, UNSEEN, np.float32)
        self._stale = np.zeros(geometry.tiles, np.bool_)

    def forget(self) -> None:
        """Start anew: the reader holds nothing."""
        self.seen[:] = False
        self.lod[:] = _NEVER_SEEN
        self.error[:] = UNSEEN

    def compare(self, levels: Levels, written: Mask) -> NDArray[np.float32]:
        """Squared error per cell (8-bit units squared, summed over its pixels), after ``written`` tiles changed."""
        tiles = self._stale | written
        if tiles.any():
            truth = [pyramid.pixels for pyramid in levels.planes]
            unseen = float(UNSEEN)
            reader_error(self.planes, truth, levels.weights, self.seen, unseen, self._geometry, tiles, self.error)
        self._stale[:] = False
        return self.error

    def paint(self, levels: Levels, upper: UpperLevels, tokens: Tokens) -> None:
        """Show the reader ``tokens``, sampled from ``levels`` and ``upper``."""
        coarse = int(np.count_nonzero(tokens.lod > TOP_LEVEL))  # these come first
        for lod, row, column in zip(*(values[:coarse].tolist() for values in tokens), strict=True):
            for samples, plane, pyramid in zip(upper.planes(lod), self.planes, levels.planes, strict=True):
                paint_upper(samples, plane, lod - pyramid.base, row, column)
        paint_tokens(levels.pyramids, self.planes, tokens.lod[coarse:], tokens.row[coarse:], tokens.column[coarse:])
        for lod, at in groups(tokens):
            self._mark(lod, tokens.row[at], tokens.column[at])

    def _mark(self, lod: int, row: Index, column: Index) -> None:
        painted = cells_under(lod, row, column, self._geometry)
        self.seen |= painted
        self.lod[painted] = lod
        self._stale |= as_blocks(np.ascontiguousarray(painted), CELLS_PER_TILE).any(axis=(1, 3))
