"""Optical flow over the Grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Map = NDArray[np.float32]


class Flow(NamedTuple):
    """Where each cell's content was in the previous frame: its origin is at (column + dx, row + dy). In cells."""

    dx: Map
    dy: Map
    confidence: Map  # in [0, 1]
