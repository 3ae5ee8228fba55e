"""What tells light that changes from things that move; see pipeline/native/light.h."""

from enum import IntEnum
from typing import Final


class Moment(IntEnum):
    """Sums over the samples of a cell: of luma now, before and in the background, their squares and products."""

    NOW = 0
    NOW_SQUARES = 1
    LAST = 2
    LAST_SQUARES = 3
    LEARNED = 4
    LEARNED_SQUARES = 5
    NOW_LAST = 6
    NOW_LEARNED = 7


MOMENTS: Final = 8
WINDOW_REACH: Final = 1
"""Cells on each side of a cell in the widest window in which a gain and an offset are fitted."""
LIGHT_NOISE: Final = 1.0
"""Variance, in grey levels squared, that noise may leave unexplained."""
UNEXPLAINED: Final = 0.05
"""Share of the change, and of the texture, that may be left unexplained besides."""
PLAIN: Final = 4.0
"""Variances up to this many times LIGHT_NOISE are no texture that could be recognised."""
PLAIN_GAIN: Final = 1.3
"""Largest ratio of mean lumas of a plain place that is taken for light."""
