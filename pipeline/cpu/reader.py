"""The reader's picture: what a streaming VLM holds after all tokens emitted so far, and how wrong that is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from foveate.pipeline.cascade.coverage import cells_under, groups
from foveate.pipeline.cascade.problem import Map, Tokens
from foveate.pipeline.cascade.rate_distortion import UNSEEN
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.cpu.sampling import Index
from foveate.pipeline.cpu.upper import UpperLevels
from foveate.pipeline.geometry import CELL, TOP_LEVEL, Geometry, Mask, cells_to_tiles, tiles_to_cells
from foveate.pipeline.native.paint import paint_tokens, paint_upper
from foveate.pipeline.native.reader import note_shown, reader_error
from foveate.pipeline.selection.painting import Interpolation
from foveate.pipeline.spec.tokens import NEVER_SEEN

_NO_NOISE = np.float32(0)


class Reader:
    """Painted by every token (its level enlarged), compared with what the texture holds."""

    def __init__(self, geometry: Geometry, subsampled: bool, interpolation: Interpolation = "bilinear") -> None:
        self._geometry, self._cubic = geometry, interpolation == "bicubic"
        rows, columns = (cells * CELL for cells in geometry.span)
        bases = (0, 1, 1) if subsampled else (0, 0, 0)
        self.planes = [np.zeros((rows >> base, columns >> base), np.uint8) for base in bases]
        self.seen = np.zeros(geometry.grid, np.bool_)  # cells of which the reader holds anything
        self.lod = np.full(geometry.grid, NEVER_SEEN, np.uint8)  # at which the reader saw each cell last
        self.error = np.full(geometry.grid, UNSEEN, np.float32)
        self._outdated = np.zeros(geometry.grid, np.bool_)  # cells whose pixels changed since it saw them
        self._marked = np.zeros(geometry.grid, np.float32)  # the greatest participation since it saw each cell last
        self._left = np.zeros((TOP_LEVEL, *geometry.grid), np.float32)  # by LOD, from 1; see known()
        self._painted = np.zeros(geometry.grid, np.bool_)  # cells, since the last comparison
        self._stale = np.zeros(geometry.tiles, np.bool_)
        self._changed = np.zeros(geometry.tiles, np.bool_)  # in the frame before

    def forget(self) -> None:
        """Start anew: the reader holds nothing."""
        self.seen[:] = False
        self.lod[:] = NEVER_SEEN
        self.error[:] = UNSEEN
        self._marked[:] = 0
        self._left[:] = 0
        self._painted[:] = False

    def compare(self, levels: Levels, written: Mask, changed: Mask, noise: np.float32 = _NO_NOISE) -> Map:
        """Squared error per cell (8-bit units squared, summed over its pixels), after tiles were ``written``.

        Those of them that differed visibly from what the texture held are ``changed``, bool[tiles]. In the others a
        keyframe writes the noise of another frame: where that moves a cell's error by no more than ``noise``, it stays
        as it was, for tokens would only exchange one frame's noise for another's.
        """
        tiles = self._stale | written
        unchanged = written & ~changed & ~self._stale
        before = self.error.copy() if noise and unchanged.any() else None
        if tiles.any():
            truth = [pyramid.pixels for pyramid in levels.planes]
            unseen = float(UNSEEN)
            reader_error(self.planes, truth, levels.weights, self.seen, unseen, self._geometry, tiles, self.error)
        if before is not None:
            same = tiles_to_cells(unchanged) & (np.abs(self.error - before) <= noise)
            np.copyto(self.error, before, where=same)
        self._note(changed)
        self._stale[:] = False
        return self.error

    def _note(self, changed: Mask) -> None:
        rested = self._changed & ~changed
        if self._stale.any() or changed.any() or rested.any():
            about = self._geometry, self._painted, self._outdated, self._left
            note_shown(changed, rested, self.lod, self.error, *about)
            self._changed = changed.copy()

    def known(self, errors: Sequence[Map]) -> tuple[Map, ...]:
        """``errors`` of LODs 1, 2 ..., float32[grid] each, or the greater ones that showing a cell is known to leave.

        Known is what a token of the LOD, or of a finer one, left: until the cell changes, or the change of a tile
        beside it ends, whose samples a token's rim mixes in. So nothing is shown again for an
        error that would only stay.
        """
        least = np.zeros(self._geometry.grid, np.float32)
        found = []
        for error, left in zip_longest(errors, self._left[: len(errors)]):
            if left is not None:
                np.maximum(least, left, out=least)
            found.append(np.maximum(error, least))
        return tuple(found)

    def marked(self, participation: Map) -> Map:
        """The greatest ``participation`` of each cell since the reader saw it last, with this frame's: float32[grid].

        It is 0 where the cell's pixels are the same as then.
        """
        np.maximum(self._marked, participation, out=self._marked)
        return self._marked * self._outdated

    def paint(self, levels: Levels, upper: UpperLevels, tokens: Tokens, participation: Map | None = None) -> None:
        """Show the reader ``tokens``, sampled from ``levels`` and ``upper``.

        ``participation`` is that of the frame, float32[grid]; None without a query.
        """
        coarse = int(np.count_nonzero(tokens.lod > TOP_LEVEL))  # these come first
        for lod, row, column in zip(*(values[:coarse].tolist() for values in tokens), strict=True):
            for samples, plane, pyramid in zip(upper.planes(lod), self.planes, levels.planes, strict=True):
                paint_upper(samples, plane, lod - pyramid.base, row, column, self._cubic)
        fine = tokens.lod[coarse:], tokens.row[coarse:], tokens.column[coarse:]
        paint_tokens(levels.pyramids, self.planes, *fine, self._cubic)
        further = int(tokens.lod.max(initial=0)) - len(self._left)
        if further > 0:
            self._left = np.concatenate([self._left, np.zeros((further, *self._geometry.grid), np.float32)])
        for lod, at in groups(tokens):
            self._mark(lod, tokens.row[at], tokens.column[at])
        self._stale |= cells_to_tiles(self._painted)
        if participation is not None:
            np.copyto(self._marked, participation, where=self._painted)

    def _mark(self, lod: int, row: Index, column: Index) -> None:
        painted = cells_under(lod, row, column, self._geometry)
        self.seen |= painted
        self._painted |= painted
        self.lod[painted] = lod
