"""What a query makes of a cell's errors; see pipeline/cascade/prior.py."""

from typing import Final

from .geometry import CELL  # noqa: TID251 (the build loads these files before foveate is installed)

OUTSIDE: Final = 0.003
"""What an error counts in cells without any participation, against 1 in those of full participation."""
ASIDE: Final = 0.1
"""What the finest detail, that of LOD 0 against LOD 1, counts beyond that in cells without any participation."""
HIDDEN: Final = 4.0**2 * CELL**2
"""Squared error that LOD 1 may hide from LOD 0 in a cell of full participation: 4 grey values at each pixel."""
LEAST_WEIGHT: Final = 1e-6
"""Of a cell, where the hidden error is divided by its weight."""
