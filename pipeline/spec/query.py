"""Queries as numbers."""

from typing import Final

COEFFICIENTS: Final = 16
"""Embedding channels of a cell: clip0 .. clip15."""
INPUTS: Final = COEFFICIENTS + 2
"""What a term reads of a cell: the embedding channels, and x and y, the cell's centre / the picture's size."""
STEEPEST: Final = 80.0
"""Greatest magnitude that the sigmoid is asked for."""
