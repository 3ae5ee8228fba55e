"""Superpixels of the Grid (SLIC)."""

from typing import Final

CLUSTERS: Final = 50
"""At most."""
ITERATIONS: Final = 5
COMPACTNESS: Final = 20.0
"""Lab units that weigh as much as the distance between two seeds."""
