"""The reader's picture: what a streaming VLM holds after all tokens emitted so far, and how wrong that is."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.coverage import groups
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.cascade.rate_distortion import UNSEEN
from foveate.pipeline.cpu.levels import CHROMA_WEIGHT, Levels, PlanePyramid, cell_means
from foveate.pipeline.cpu.sampling import Index, enlarged_blocks
from foveate.pipeline.cpu.scratch import Scratch
from foveate.pipeline.cpu.tile_mask import TileMask
from foveate.pipeline.geometry import CELL, CELLS_PER_TILE, TILE, TOP_LEVEL, Geometry, Mask, as_blocks
from foveate.pipeline.selection import PATCH


class Reader:
    """Painted by every token (its level enlarged bilinearly), compared with what the texture holds."""

    def __init__(self, geometry: Geometry, subsampled: bool) -> None:
        self._geometry = geometry
        rows, columns = (cells * CELL for cells in geometry.span)
        bases = (0, 1, 1) if subsampled else (0, 0, 0)
        self.planes = [np.zeros((rows >> base, columns >> base), np.uint8) for base in bases]
        self.seen = np.zeros(geometry.grid, np.bool_)  # cells of which the reader holds anything
        self.error = np.full(geometry.grid, UNSEEN, np.float32)
        self._stale = np.zeros(geometry.tiles, np.bool_)
        self._scratch = Scratch()

    def forget(self) -> None:
        """Start anew: the reader holds nothing."""
        self.seen[:] = False
        self.error[:] = UNSEEN

    def compare(self, levels: Levels, written: Mask) -> NDArray[np.float32]:
        """Squared error per cell (8-bit units squared, summed over its pixels), after ``written`` tiles changed."""
        tiles = TileMask(self._stale | written)
        if tiles.any:
            seen = tiles.window(self.seen, CELLS_PER_TILE)
            error = tiles.target(self.error, CELLS_PER_TILE, "error", self._scratch)
            np.copyto(error, np.where(seen, self._error(levels, tiles), UNSEEN))
            tiles.store(error, self.error, CELLS_PER_TILE)
        self._stale[:] = False
        return self.error

    def _error(self, levels: Levels, tiles: TileMask) -> NDArray[np.float32]:
        total: NDArray[np.float32] | None = None
        for pyramid, plane in zip(levels.planes, self.planes, strict=True):
            side = TILE >> pyramid.base
            pixels = tiles.window(pyramid.pixels, side)
            difference = self._scratch.array("difference", pixels.shape, np.uint8)
            cv2.absdiff(pixels, tiles.window(plane, side), dst=difference)
            squares = self._scratch.array("squares", pixels.shape, np.float32)
            np.copyto(squares, difference)
            np.multiply(squares, squares, out=squares)
            mean = cell_means(squares, pyramid.base, self._scratch)
            total = mean.copy() if total is None else total + np.float32(CHROMA_WEIGHT) * mean
        assert total is not None
        return total * np.float32(4**TOP_LEVEL)

    def paint(self, levels: Levels, tokens: Tokens) -> None:
        """Show the reader ``tokens``, sampled from ``levels``."""
        for lod, at in groups(tokens):
            row, column = tokens.row[at], tokens.column[at]
            for pyramid, plane in zip(levels.planes, self.planes, strict=True):
                _paint(plane, pyramid, lod, row, column)
            self._mark(lod, row, column)

    def _mark(self, lod: int, row: Index, column: Index) -> None:
        painted = np.zeros(self._geometry.span, np.bool_)
        as_blocks(painted, 1 << lod)[row, :, column, :] = True
        painted = painted[: self._geometry.grid[0], : self._geometry.grid[1]]
        self.seen |= painted
        self._stale |= as_blocks(np.ascontiguousarray(painted), CELLS_PER_TILE).any(axis=(1, 3))


def _paint(plane: NDArray[np.uint8], pyramid: PlanePyramid, lod: int, row: Index, column: Index) -> None:
    side = PATCH << lod >> pyramid.base
    target = as_blocks(plane, side)
    if lod <= pyramid.base:
        source = as_blocks(pyramid.pixels, side)
        there = (row < source.shape[0]) & (column < source.shape[2])  # a group of merge = 2 may reach over the texture
        row, column = row[there], column[there]
        target[row, :, column, :] = source[row, :, column, :]
        return
    large = enlarged_blocks(pyramid.level(lod), row, column, PATCH, 1 << (lod - pyramid.base))
    large += np.float32(0.5)  # to nearest: the cast cuts off
    target[row, :, column, :] = large.astype(np.uint8)
