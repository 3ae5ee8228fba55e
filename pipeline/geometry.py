"""Tiles, cells, levels and quadtree nodes: how a picture of any size is divided."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.spec.geometry import CELL as CELL
from foveate.pipeline.spec.geometry import CELLS_PER_TILE as CELLS_PER_TILE
from foveate.pipeline.spec.geometry import MOST_LOD as MOST_LOD
from foveate.pipeline.spec.geometry import ROOT as ROOT
from foveate.pipeline.spec.geometry import TILE as TILE
from foveate.pipeline.spec.geometry import TOP_LEVEL as TOP_LEVEL

Mask = NDArray[np.bool_]
Map = NDArray[np.float32]  # one value per cell, unless said otherwise


@dataclass(frozen=True)
class Geometry:
    """The divisions of a ``width`` x ``height`` picture, padded to whole tiles."""

    width: int
    height: int

    @cached_property
    def tiles(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        return -(-self.height // TILE), -(-self.width // TILE)

    @cached_property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells, the padding's included."""
        return self.tiles[0] * CELLS_PER_TILE, self.tiles[1] * CELLS_PER_TILE

    @cached_property
    def inside(self) -> Mask:
        """bool[grid]: cells that hold at least one pixel of the picture."""
        rows, columns = self.grid
        return np.outer(np.arange(rows) * CELL < self.height, np.arange(columns) * CELL < self.width)

    @cached_property
    def cells(self) -> int:
        """Number of cells that may be selected."""
        return int(self.inside.sum())

    @cached_property
    def span(self) -> tuple[int, int]:
        """Rows and columns of cells up to whole tokens of LOD TOP_LEVEL."""
        rows, columns = self.grid
        return -(-rows // ROOT) * ROOT, -(-columns // ROOT) * ROOT

    def level(self, level: int) -> tuple[int, int]:
        """Rows and columns of samples of ``level``, the padding's included. Above TOP_LEVEL, halves are rounded up."""
        side = 1 << level
        return -(-self.tiles[0] * TILE // side), -(-self.tiles[1] * TILE // side)

    def tokens(self, lod: int, merge: int = 1) -> tuple[int, int]:
        """Rows and columns of tokens of ``lod``, or of ``merge`` x ``merge`` groups of them, that hold any pixel."""
        side = CELL * merge << lod
        return -(-self.height // side), -(-self.width // side)

    def units(self, merge: int) -> Mask:
        """bool[units]: the ``merge`` x ``merge`` groups of the grid's cells that hold any pixel of the picture.

        Groups at the grid's right and bottom edge may reach beyond it.
        """
        side = CELL * merge
        rows, columns = (-(-cells // merge) for cells in self.grid)
        return np.outer(np.arange(rows) * side < self.height, np.arange(columns) * side < self.width)

    def top(self, most: int, merge: int = 1) -> int:
        """The least LOD from TOP_LEVEL on at which ``most`` tokens, or groups of them, cover the whole picture.

        Raises ValueError where not even one is allowed.
        """
        if most < 1:
            raise ValueError(f"at least 1 token or group is needed to cover a picture, got {most}")
        lod = TOP_LEVEL
        while math.prod(self.tokens(lod, merge)) > most:
            lod += 1
        return lod


def as_blocks(plane: NDArray[Any], side: int) -> NDArray[Any]:
    """View [h, w], whole blocks of a contiguous array, as [h/side, side, w/side, side]."""
    height, width = plane.shape
    return plane.reshape(height // side, side, width // side, side)


def tiles_to_cells(tiles: NDArray[np.generic]) -> NDArray[np.generic]:
    """Each tile's value for its 2x2 cells: [r, c] -> [2r, 2c]."""
    return tiles.repeat(CELLS_PER_TILE, axis=0).repeat(CELLS_PER_TILE, axis=1)


def cells_to_tiles(cells: Mask) -> Mask:
    """The tiles of which any cell is set: contiguous bool[2r, 2c] -> bool[r, c]."""
    pairs = cells.view(np.uint16)
    return np.asarray((pairs[0::CELLS_PER_TILE] | pairs[1::CELLS_PER_TILE]) != 0, np.bool_)
