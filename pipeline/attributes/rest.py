"""What counts as at rest: the limits of the model of the still background, the same for both engines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEP = 10
"""Difference of a sample of level 2, in 8-bit units, that is seen: well above what coding leaves of its 16 pixels."""
PATIENCE = 10
"""Frames without a change until what a cell holds is what rests there."""
PANS = 0.5
"""Share of the cells that stir where the camera itself moves: then nothing rests."""


def pans(stirs: NDArray[np.float32]) -> bool:
    """Whether so much stirs, float32[grid], that it must be the camera."""
    return bool(np.count_nonzero(stirs) >= PANS * stirs.size)
