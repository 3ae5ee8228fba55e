"""What tells a changed tile, and noise."""

from typing import Final

BLOCK: Final = 8
"""Level-0 pixels along a block over which differences are averaged."""
NOISE_LEVELS: Final = 256
NOISE_PER_GREY: Final = 8
"""Levels of noise to a grey value."""
NO_COLOUR: Final = 128
"""Chroma of a grey picture, in 8-bit units."""
