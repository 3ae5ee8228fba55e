"""Which cells tokens cover: values of cells to tokens, and of tokens to cells."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.geometry import CELL, TOP_LEVEL, Geometry, Map, Mask

T = TypeVar("T", bound=np.generic)


def groups(tokens: Tokens) -> list[tuple[int, slice]]:
    """(LOD, its tokens) for each LOD there is, the coarsest first: tokens are in that order."""
    found, start = [], 0
    for lod, count in reversed(list(enumerate(np.bincount(tokens.lod).tolist()))):
        if count:
            found.append((lod, slice(start, start + count)))
            start += count
    return found


def spread_tokens(tokens: Tokens, values: NDArray[np.float32], geometry: Geometry) -> Map:
    """Each token's value (not negative) on the cells it covers, 0 elsewhere: float32[grid]. The finest token counts; of
    those that repeat each other the one with the greatest value."""
    spread = np.zeros(geometry.grid, np.float32)
    for lod, at in groups(tokens):
        coarse = np.full(_shape(lod, geometry), -1.0, np.float32)
        np.maximum.at(coarse, (tokens.row[at], tokens.column[at]), values[at])
        fine = on_cells(coarse, lod, geometry.grid)
        np.copyto(spread, fine, where=fine >= 0)
    return spread


def cells_under(lod: int, row: NDArray[np.int32], column: NDArray[np.int32], geometry: Geometry) -> Mask:
    """bool[grid]: the cells that tokens of one LOD cover."""
    coarse = np.zeros(_shape(lod, geometry), np.bool_)
    coarse[row, column] = True
    return on_cells(coarse, lod, geometry.grid)


def _shape(lod: int, geometry: Geometry) -> tuple[int, int]:
    """Rows and columns of tokens of one LOD over the grid."""
    rows, columns = geometry.grid
    return -(-rows >> lod), -(-columns >> lod)


def on_cells(coarse: NDArray[T], lod: int, grid: tuple[int, ...]) -> NDArray[T]:
    """Values of places of 2**lod x 2**lod cells, copied to each of their cells: [rows, columns] -> [grid]."""
    rows, columns = grid
    return coarse.repeat(1 << lod, axis=0)[:rows].repeat(1 << lod, axis=1)[:, :columns]


class Coverage:
    """The cells under each of one frame's tokens."""

    def __init__(self, tokens: Tokens, geometry: Geometry, disjoint: bool = True) -> None:
        """``disjoint``: the tokens do not overlap, unless they repeat each other."""
        self._geometry = geometry
        self._tokens = tokens
        self._groups = groups(tokens)
        side = np.int32(1) << tokens.lod.astype(np.int32)
        rows = _overlap(tokens.row * side, side, geometry.height)
        cells = rows * _overlap(tokens.column * side, side, geometry.width)
        self.everywhere = disjoint and cells.sum() >= geometry.cells and cells[_first(tokens)].sum() == geometry.cells
        self._cells = np.maximum(cells, 1).astype(np.float32)

    def means(self, maps: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mean over the cells inside the picture: float32[M, grid] -> [M, K]."""
        return self._under(maps * self._geometry.inside, 0, np.add) / self._cells

    def minima(self, maps: NDArray[np.int32], beyond: int) -> NDArray[np.int32]:
        """Least value under each token: int32[M, grid] -> [M, K]; cells in the padding count as ``beyond``."""
        return self._under(np.where(self._geometry.inside, maps, np.int32(beyond)), beyond, np.minimum)

    def _under(self, maps: NDArray[Any], fill: int, unite: np.ufunc) -> NDArray[Any]:
        """[M, K]: the cells under each token, reduced by ``unite``; cells off the grid count as ``fill``."""
        padded = self._padded(maps, fill)
        out = np.empty((len(maps), len(self._cells)), maps.dtype)
        for lod, at in self._groups:
            fine = min(lod, TOP_LEVEL)
            view, steps = _as_squares(padded, 1 << fine), lod - fine
            if steps:
                united = unite.reduce(view, axis=(2, 4))
                padding = [(0, 0), *((0, -size % (1 << steps)) for size in united.shape[1:])]
                view = _as_squares(np.pad(united, padding, constant_values=fill), 1 << steps)
            squares = view[:, self._tokens.row[at], :, self._tokens.column[at], :]
            out[:, at] = unite.reduce(squares, axis=(2, 3)).T
        return out

    def _padded(self, maps: NDArray[Any], fill: int) -> NDArray[Any]:
        padded = np.full((len(maps), *self._geometry.span), fill, maps.dtype)
        padded[:, : maps.shape[1], : maps.shape[2]] = maps
        return padded


def _as_squares(maps: NDArray[Any], side: int) -> NDArray[Any]:
    """View [M, rows, columns], whole squares of it, as [M, rows/side, side, columns/side, side]."""
    count, rows, columns = maps.shape
    return maps.reshape(count, rows // side, side, columns // side, side)


def _first(tokens: Tokens) -> Mask:
    """bool[K]: False for tokens that repeat an earlier one: the one before it, or above it in a group."""
    first = np.ones(len(tokens.lod), np.bool_)
    place = (tokens.lod.astype(np.int64) << 20 | tokens.row) << 20 | tokens.column
    for back in (1, 2, 3):
        first[back:] &= place[back:] != place[:-back]
    return first


def _overlap(start: NDArray[np.int32], side: NDArray[np.int32], pixels: int) -> NDArray[np.int32]:
    """Cells of [start, start + side) that hold any of the first ``pixels`` pixels."""
    return np.clip(-(-pixels // CELL) - start, 0, side)
