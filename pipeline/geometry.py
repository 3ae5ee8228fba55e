"""Tiles, cells, levels and quadtree nodes: how a picture of any size is divided."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

TILE = 32  # level-0 pixels; the unit of change
CELL = 16  # level-0 pixels; one patch
TOP_LEVEL = 4  # the coarsest level; one sample of it covers one cell
CELLS_PER_TILE = TILE // CELL
ROOT = 1 << TOP_LEVEL  # cells along the side of a quadtree root

Mask = NDArray[np.bool_]


class Rect(NamedTuple):
    """A rectangle of rows [top, bottom) and columns [left, right), in tiles, cells or pixels."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def area(self) -> int:
        """Rows times columns."""
        return (self.bottom - self.top) * (self.right - self.left)

    def scaled(self, factor: int) -> Rect:
        """The same rectangle in a finer unit."""
        return Rect(*(edge * factor for edge in self))

    def grown(self, margin: int, rows: int, columns: int) -> Rect:
        """Wider by ``margin`` on each side, kept inside [0, rows) x [0, columns)."""
        return Rect(
            max(self.top - margin, 0),
            max(self.left - margin, 0),
            min(self.bottom + margin, rows),
            min(self.right + margin, columns),
        )

    def union(self, other: Rect) -> Rect:
        """The smallest rectangle around both."""
        return Rect(
            min(self.top, other.top),
            min(self.left, other.left),
            max(self.bottom, other.bottom),
            max(self.right, other.right),
        )

    def within(self, outer: Rect) -> tuple[slice, slice]:
        """Index of this rectangle in an array that holds ``outer``."""
        return (
            slice(self.top - outer.top, self.bottom - outer.top),
            slice(self.left - outer.left, self.right - outer.left),
        )

    @property
    def slices(self) -> tuple[slice, slice]:
        """Index of this rectangle in an array that starts at (0, 0)."""
        return slice(self.top, self.bottom), slice(self.left, self.right)


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
        """Rows and columns of cells that tokens can reach: the grid, up to whole 2x2 groups of the coarsest LOD."""
        rows, columns = self.grid
        return -(-rows // (2 * ROOT)) * 2 * ROOT, -(-columns // (2 * ROOT)) * 2 * ROOT

    def level(self, level: int) -> tuple[int, int]:
        """Rows and columns of samples of ``level``, the padding's included."""
        return self.tiles[0] * TILE >> level, self.tiles[1] * TILE >> level


def as_blocks(plane: NDArray[Any], side: int) -> NDArray[Any]:
    """View [h, w], whole blocks of a contiguous array, as [h/side, side, w/side, side]."""
    height, width = plane.shape
    return plane.reshape(height // side, side, width // side, side)


def tiles_to_cells(tiles: NDArray[np.generic]) -> NDArray[np.generic]:
    """Each tile's value for its 2x2 cells: [r, c] -> [2r, 2c]."""
    return tiles.repeat(CELLS_PER_TILE, axis=0).repeat(CELLS_PER_TILE, axis=1)


def around(mask: Mask) -> Rect:
    """The smallest rectangle that holds all True elements, of which there must be one."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return Rect(int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)


RECT_OVERHEAD = 150  # tiles: what starting on one more rectangle costs, measured on the CPU engine
MOST_BOXES = 16


def loose_cover(mask: Mask) -> list[Rect]:
    """A few rectangles that hold all True elements of ``mask`` and as little else as is worth it.

    Two rectangles are merged where their union costs less than starting twice. They may overlap.
    """
    if not mask.any():
        return []
    if mask.all():
        return [Rect(0, 0, *mask.shape)]
    count, _, stats, _ = cv2.connectedComponentsWithStats(mask.view(np.uint8), connectivity=8)
    if count - 1 > MOST_BOXES:
        return [around(mask)]
    return _merged([Rect(y, x, y + h, x + w) for x, y, w, h, _ in stats[1:].tolist()])


def _merged(boxes: list[Rect]) -> list[Rect]:
    merged: list[Rect] = []
    while boxes:
        box = boxes.pop()
        for other in merged:
            union = box.union(other)
            if union.area <= box.area + other.area + RECT_OVERHEAD:
                merged.remove(other)
                boxes.append(union)
                break
        else:
            merged.append(box)
    return merged
