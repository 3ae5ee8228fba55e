"""Squared errors of a cell: 8-bit units squared, summed over its level-0 pixels."""

from typing import Final

from .geometry import CELL

UNSEEN: Final = 64.0**2 * CELL**2
"""Of a cell that the reader never saw."""
CHROMA_WEIGHT: Final = 0.25
"""Of a squared chroma error against a luma error of the same pixel: what 4:2:0 codecs count, at any sampling."""
