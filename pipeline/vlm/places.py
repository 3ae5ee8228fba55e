"""Positions of tokens in the picture, and how to read a learned position table there.

A place is a centre **and** an extent. A token of LOD l shows what one patch would show of the picture reduced by 2^l,
so it is to get the position that the model gives to that patch: the model's own resampling of its table, onto a grid
that is coarser by 2^l. Reading the table with a kernel that is wider by 2^l gives just that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH

Kernel = Literal["linear", "cubic"]

_CUBIC = -0.5
"""Free parameter of the cubic convolution kernel (Keys 1981), as in PyTorch's and Pillow's antialiased resampling."""


class Located(Protocol):
    """Anything with the positions of one frame's tokens, such as a Selection, whose fields are described there."""

    @property
    def index(self) -> int:
        """Number of the frame."""

    @property
    def width(self) -> int:
        """Of the frame, in pixels."""

    @property
    def height(self) -> int:
        """Of the frame, in pixels."""

    @property
    def x(self) -> NDArray[np.int32]:
        """Centres, in pixels: [K]."""

    @property
    def y(self) -> NDArray[np.int32]:
        """Centres, in pixels: [K]."""

    @property
    def lod(self) -> NDArray[np.uint8]:
        """Levels of detail: [K]."""

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Places:
    """The places of K tokens in a picture of ``grid`` = (rows, columns) cells of 16 x 16 pixels."""

    rows: NDArray[np.float32]  # [K]: centre, in cells; 0 is the centre of the first cell
    columns: NDArray[np.float32]  # [K]
    extent: NDArray[np.float32]  # [K]: side, in cells
    grid: tuple[int, int]

    @classmethod
    def of(cls, selection: Located) -> Self:
        """The places of a Selection's tokens. Centres beyond the picture's edge are moved onto its last cell."""
        grid = selection.grid
        return cls(_inside(selection.y, grid[0]), _inside(selection.x, grid[1]), _sides(selection.lod), grid)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, order: NDArray[np.intp]) -> Places:
        """The places of the selected tokens, in the given order."""
        return Places(self.rows[order], self.columns[order], self.extent[order], self.grid)


def _inside(centre: NDArray[np.int32], cells: int) -> NDArray[np.float32]:
    return np.clip(centre / np.float32(PATCH) - np.float32(0.5), 0, cells - 1).astype(np.float32)


def _sides(lod: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.exp2(lod.astype(np.float32))


def table_weights(
    centre: NDArray[np.float32],
    extent: NDArray[np.float32],
    cells: int,
    entries: int,
    kernel: Kernel = "linear",
    antialias: bool = True,
) -> NDArray[np.float32]:
    """How much each entry of a position table counts at each place along one axis.

    float32[K, entries], rows add up to 1. ``centre`` and ``extent`` are in cells, as in Places; the axis has ``cells``
    of them and the table ``entries``. Pixel centres are aligned at half integers (``align_corners=False``). What of the
    kernel lies beyond the ends of the table is left out and the rest scaled up, as antialiased resampling in PyTorch
    and Pillow does. Without ``antialias`` the kernel keeps the width that it has for enlarging. Raises ValueError for
    an empty axis or table.
    """
    if cells < 1 or entries < 1:
        raise ValueError(f"cells and entries must be at least 1, got {cells} and {entries}")
    scale = extent.astype(np.float64) * entries / cells
    centre_in_table = (centre.astype(np.float64) + 0.5) * entries / cells - 0.5
    support = np.maximum(scale, 1.0) if antialias else np.ones_like(scale)
    distance = (np.arange(entries) - centre_in_table[:, None]) / support[:, None]
    weights = _linear(np.abs(distance)) if kernel == "linear" else _cubic(np.abs(distance))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float32)


def _linear(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(1 - distance, 0)


def _cubic(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    near = ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance * distance + 1
    far = ((distance - 5) * distance + 8) * distance - 4
    return np.where(distance < 1, near, np.where(distance < 2, _CUBIC * far, 0))
