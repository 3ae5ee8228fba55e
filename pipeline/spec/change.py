"""What tells a changed tile, a scene cut and noise."""

from typing import Final

BLOCK: Final = 8
"""Level-0 pixels along a block over which differences are averaged."""
HISTOGRAM_BINS: Final = 32
"""Of 8-bit luma, for scene cuts."""
HISTOGRAM_SAMPLES: Final = 65_536
"""Pixels that enter a histogram, about; larger pictures are sampled on a lattice."""
NOISE_LEVELS: Final = 256
NOISE_PER_GREY: Final = 8
"""Levels of noise to a grey value."""
NO_COLOUR: Final = 128
"""Chroma of a grey picture, in 8-bit units."""
