"""How pictures are divided."""

from typing import Final

TILE: Final = 32
"""Level-0 pixels along a tile, the unit of change."""
CELL: Final = 16
"""Level-0 pixels along a cell, one patch."""
TOP_LEVEL: Final = 4
"""The coarsest level that is kept: one sample of it covers one cell."""
CELLS_PER_TILE: Final = TILE // CELL
"""Along a side."""
ROOT: Final = 1 << TOP_LEVEL
"""Cells along a token of LOD TOP_LEVEL, the coarsest ones where the budget allows."""
MOST_LOD: Final = 16
"""One token of it covers 2**20 pixels a side, more than any picture has."""
