"""Limits of the background model, the same for both engines."""

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.spec.change import NOISE_PER_GREY

STEP = 10
"""Largest difference of a sample of level 2, in 8-bit units, that counts as no change: well above coding noise."""
NOISE_STEP = 2
"""The same for each grey value by which noise lets frames differ, where that is more."""
LEARNING_FRAMES = 10
"""Frames without a change after which a cell becomes background."""
PANS = 0.5
"""Share of the cells that change from which on the camera is taken to move: there is no background then."""


def step(noise: int) -> int:
    """Largest difference that counts as no change at a level of ``noise``, in units of 1 / NOISE_PER_GREY."""
    return max(STEP, NOISE_STEP * noise // NOISE_PER_GREY)


def pans(difference: NDArray[np.float32]) -> bool:
    """Whether so many cells differ from the previous frame, float32[grid], that the camera must be moving."""
    return bool(np.count_nonzero(difference) >= PANS * difference.size)
