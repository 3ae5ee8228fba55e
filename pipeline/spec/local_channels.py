"""The channels with local reach."""

from enum import IntEnum
from typing import Final

LOWPASS_LEVEL: Final = 3
"""Level of the luma that is the lowpass channel."""
SALIENCY_LEVEL: Final = 2
"""Level of the centres that are compared with their surround at TOP_LEVEL."""
SALIENCY_GAIN: Final = 4.0
"""Centre-surround differences of natural pictures rarely exceed a quarter of the range."""

RED_GREEN_CR: Final = 1.058
"""Red-green (R - G) and blue-yellow (B - (R + G) / 2), both halved, come from Cb and Cr by BT.601's matrix."""
RED_GREEN_CB: Final = 0.172
BLUE_YELLOW_CB: Final = 0.972
BLUE_YELLOW_CR: Final = -0.172

EDGE_CELL: Final = 0.1
"""A cell is an edge cell where edges or edges_inverted exceed this: a step of about a tenth of the range."""
EDGE_REACH: Final = 8
"""Cells; edge_distance is in this unit."""


class GridChannel(IntEnum):
    """Order in which the card keeps the channels that scores read."""

    EDGES = 0
    EDGES_INVERTED = 1
    HIGHPASS = 2
    LOWPASS = 3
    MOTION = 4
    SALIENCY = 5
    EDGE_DISTANCE = 6
