"""From tokens to the cells they cover, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Map, Tokens
from foveate.pipeline.geometry import CELL, Geometry


def groups(tokens: Tokens) -> list[tuple[int, slice]]:
    """(LOD, its tokens) for each LOD there is, the coarsest first: tokens are in that order."""
    found, start = [], 0
    for lod, count in reversed(list(enumerate(np.bincount(tokens.lod).tolist()))):
        if count:
            found.append((lod, slice(start, start + count)))
            start += count
    return found


def spread_tokens(tokens: Tokens, values: NDArray[np.float32], geometry: Geometry) -> Map:
    """Each token's value (not negative) on the cells it covers, 0 elsewhere: float32[grid]. The finest token counts."""
    rows, columns = geometry.grid
    spread = np.zeros((rows, columns), np.float32)
    for lod, at in groups(tokens):
        coarse = np.full([cells >> lod for cells in geometry.span], -1.0, np.float32)
        coarse[tokens.row[at], tokens.column[at]] = values[at]
        fine = coarse.repeat(1 << lod, axis=0).repeat(1 << lod, axis=1)[:rows, :columns]
        np.copyto(spread, fine, where=fine >= 0)
    return spread


class Coverage:
    """The cells under each of one frame's tokens."""

    def __init__(self, tokens: Tokens, geometry: Geometry) -> None:
        self._geometry = geometry
        self._tokens = tokens
        self._groups = groups(tokens)
        side = np.int32(1) << tokens.lod.astype(np.int32)
        rows = _overlap(tokens.row * side, side, geometry.height)
        cells = rows * _overlap(tokens.column * side, side, geometry.width)
        self.everywhere = int(cells.sum()) == geometry.cells  # tokens of one frame do not overlap
        self._cells = np.maximum(cells, 1).astype(np.float32)

    def means(self, maps: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mean over the cells inside the picture: float32[M, grid] -> [M, K]."""
        return self._sums(maps * self._geometry.inside) / self._cells

    def minima(self, maps: NDArray[np.int32], beyond: int) -> NDArray[np.int32]:
        """Least value under each token: int32[M, grid] -> [M, K]; cells in the padding count as ``beyond``."""
        padded = self._padded(np.where(self._geometry.inside, maps, np.int32(beyond)), beyond)
        out = np.empty((len(maps), len(self._cells)), np.int32)
        for lod, at in self._groups:
            out[:, at] = self._under(padded, lod, at).min(axis=(2, 3)).T
        return out

    def _sums(self, maps: NDArray[np.float32]) -> NDArray[np.float32]:
        padded = self._padded(maps, 0)
        out = np.empty((len(maps), len(self._cells)), np.float32)
        for lod, at in self._groups:
            out[:, at] = self._under(padded, lod, at).sum(axis=(2, 3)).T
        return out

    def _padded(self, maps: NDArray[Any], fill: int) -> NDArray[Any]:
        padded = np.full((len(maps), *self._geometry.span), fill, maps.dtype)
        padded[:, : maps.shape[1], : maps.shape[2]] = maps
        return padded

    def _under(self, padded: NDArray[Any], lod: int, at: slice) -> NDArray[Any]:
        """[n, M, side, side]: the cells under the n tokens of one LOD."""
        count, rows, columns = padded.shape
        side = 1 << lod
        view = padded.reshape(count, rows >> lod, side, columns >> lod, side)
        return view[:, self._tokens.row[at], :, self._tokens.column[at], :]


def _overlap(start: NDArray[np.int32], side: NDArray[np.int32], pixels: int) -> NDArray[np.int32]:
    """Cells of [start, start + side) that hold any of the first ``pixels`` pixels."""
    return np.clip(-(-pixels // CELL) - start, 0, side)
