"""How a query changes the cost of a cell's errors; see pipeline/cascade/query_prior.py."""

from typing import Final

from .geometry import CELL  # noqa: TID251 (the build loads these files before foveate is installed)

OUTSIDE_WEIGHT: Final = 0.003
"""Weight of errors in cells without any participation; it is 1 in those that match."""
FULL_MATCH: Final = 0.5
"""Participation from which on a cell matches: one that shows part of an object is wanted as much as one it fills."""
DETAIL_WEIGHT: Final = 0.5
"""Further weight of the finest detail, LOD 0 against LOD 1, in cells that match."""
OUTSIDE_DETAIL_WEIGHT: Final = 0.01
"""The same in cells without any participation."""
HIDDEN_ERROR: Final = 2.0**2 * CELL**2
"""Squared error that LOD 1 may hide from LOD 0 in a cell of full participation: 2 grey values at each pixel."""
LEAST_WEIGHT: Final = 1e-6
"""Of a cell, where the hidden error is divided by its weight."""
HIDDEN_AT_LOD_3: Final = 6
HIDDEN_AT_LOD_4: Final = 22
HIDDEN_PER_LOD: Final = 16
"""Error assumed hidden, in units of HIDDEN_ERROR: the LOD itself up to 2, and this much more for each LOD above 4."""
