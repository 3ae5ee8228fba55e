"""Squared errors of a cell: 8-bit units squared, summed over its level-0 pixels."""

from typing import Final

from .geometry import CELL  # noqa: TID251 (the build loads these files before foveate is installed)

UNSEEN: Final = 64.0**2 * CELL**2
"""Of a cell of which the reader holds nothing: 64 grey values at each of its pixels."""
CHROMA_WEIGHT: Final = 0.25
"""Of a squared chroma error against a luma error of the same pixel: what 4:2:0 codecs count, at any sampling."""
UNIT: Final = 64
"""To a grey value: both engines sum the errors of levels in whole numbers of 1 / UNIT."""
