"""The reader's picture: what a model has seen through all tokens emitted so far, and how far that is from the frame."""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from foveate.pipeline.cascade.coverage import cells_under, groups
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.cascade.rate_distortion import UNSEEN
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.cpu.sampling import Index
from foveate.pipeline.cpu.upper import UpperLevels
from foveate.pipeline.geometry import CELL, TOP_LEVEL, Geometry, Map, Mask, cells_to_tiles, tiles_to_cells
from foveate.pipeline.native.paint import paint_tokens, paint_upper
from foveate.pipeline.native.reader import reader_error, update_residuals
from foveate.pipeline.selection.painting import Interpolation
from foveate.pipeline.spec.tokens import NEVER_SEEN

_NO_NOISE = np.float32(0)


class Reader:
    """A picture painted with every token, enlarged to full size, and compared with the current frame."""

    def __init__(self, geometry: Geometry, subsampled: bool, interpolation: Interpolation = "bilinear") -> None:
        self._geometry, self._cubic = geometry, interpolation == "bicubic"
        rows, columns = (cells * CELL for cells in geometry.span)
        bases = (0, 1, 1) if subsampled else (0, 0, 0)
        self.planes = [np.zeros((rows >> base, columns >> base), np.uint8) for base in bases]
        self.seen = np.zeros(geometry.grid, np.bool_)  # cells that the reader has seen
        self.lod = np.full(geometry.grid, NEVER_SEEN, np.uint8)  # of the last token on each cell
        self.error = np.full(geometry.grid, UNSEEN, np.float32)
        self._outdated = np.zeros(geometry.grid, np.bool_)  # cells that changed since they were last shown
        self._peak = np.zeros(geometry.grid, np.float32)  # greatest participation since each cell was last shown
        self._residual = np.zeros((TOP_LEVEL, *geometry.grid), np.float32)  # by LOD, from 1; see with_residuals()
        self._painted = np.zeros(geometry.grid, np.bool_)  # cells painted since the last comparison
        self._stale = np.zeros(geometry.tiles, np.bool_)
        self._changed = np.zeros(geometry.tiles, np.bool_)  # in the previous frame

    def reset(self) -> None:
        """Clear the picture: nothing has been shown yet."""
        self.seen[:] = False
        self.lod[:] = NEVER_SEEN
        self.error[:] = UNSEEN
        self._peak[:] = 0
        self._residual[:] = 0
        self._painted[:] = False

    def compare(self, levels: Levels, written: Mask, changed: Mask, noise: np.float32 = _NO_NOISE) -> Map:
        """Squared error per cell (8-bit units squared, summed over its pixels), after tiles were ``written``.

        ``changed``, bool[tiles], are those that differ visibly from the previous frame. In the others a keyframe writes
        only new noise: where the error changes by no more than ``noise`` there, the old one is kept, as a token would
        only replace one frame's noise by another's.
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
        self._update_residuals(changed)
        self._stale[:] = False
        return self.error

    def _update_residuals(self, changed: Mask) -> None:
        settled = self._changed & ~changed
        if self._stale.any() or changed.any() or settled.any():
            about = self._geometry, self._painted, self._outdated, self._residual
            update_residuals(changed, settled, self.lod, self.error, *about)
            self._changed = changed.copy()

    def with_residuals(self, errors: Sequence[Map]) -> tuple[Map, ...]:
        """``errors`` of LODs 1, 2 ..., float32[grid] each, raised to the residual errors that were measured.

        A residual is the error left after a token of that LOD, or of a finer one, was shown. It holds until the
        cell changes, or until a change in a tile beside it ends, because enlarging a token reads neighbouring samples.
        So no token is spent on an error that it would not reduce.
        """
        least = np.zeros(self._geometry.grid, np.float32)
        found = []
        for error, residual in zip_longest(errors, self._residual[: len(errors)]):
            if residual is not None:
                np.maximum(least, residual, out=least)
            found.append(np.maximum(error, least))
        return tuple(found)

    def peak_participation(self, participation: Map) -> Map:
        """The greatest ``participation`` of each cell since it was last shown, this frame included: float32[grid].

        It is 0 where the cell has not changed since.
        """
        np.maximum(self._peak, participation, out=self._peak)
        return self._peak * self._outdated

    def paint(self, levels: Levels, upper: UpperLevels, tokens: Tokens, participation: Map | None = None) -> None:
        """Paint ``tokens``, sampled from ``levels`` and ``upper``, into the picture.

        ``participation`` is that of the frame, float32[grid]; None without a query.
        """
        coarse = int(np.count_nonzero(tokens.lod > TOP_LEVEL))  # these come first
        for lod, row, column in zip(*(values[:coarse].tolist() for values in tokens), strict=True):
            for samples, plane, pyramid in zip(upper.planes(lod), self.planes, levels.planes, strict=True):
                paint_upper(samples, plane, lod - pyramid.base, row, column, self._cubic)
        fine = tokens.lod[coarse:], tokens.row[coarse:], tokens.column[coarse:]
        paint_tokens(levels.pyramids, self.planes, *fine, self._cubic)
        further = int(tokens.lod.max(initial=0)) - len(self._residual)
        if further > 0:
            self._residual = np.concatenate([self._residual, np.zeros((further, *self._geometry.grid), np.float32)])
        for lod, at in groups(tokens):
            self._mark_painted(lod, tokens.row[at], tokens.column[at])
        self._stale |= cells_to_tiles(self._painted)
        if participation is not None:
            np.copyto(self._peak, participation, where=self._painted)

    def _mark_painted(self, lod: int, row: Index, column: Index) -> None:
        painted = cells_under(lod, row, column, self._geometry)
        self.seen |= painted
        self._painted |= painted
        self.lod[painted] = lod
