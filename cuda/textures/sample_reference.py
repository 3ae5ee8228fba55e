"""What sample.cu computes, from downloaded texels: trilinear, samples in their texels' centres, clamped at the edge."""

import numpy as np
from numpy.typing import NDArray

Texels = NDArray[np.float16]


def bilinear(texels: Texels, x: float, y: float) -> NDArray[np.float32]:
    """One texel float32[C] of [rows, columns, C] at (x, y) in [0, 1]."""
    rows, columns = texels.shape[:2]
    at_y, at_x = y * rows - 0.5, x * columns - 0.5
    top, left = int(np.floor(at_y)), int(np.floor(at_x))
    down, right = at_y - top, at_x - left
    total = np.zeros(texels.shape[2], np.float32)
    for row, weight_y in ((top, 1 - down), (top + 1, down)):
        for column, weight_x in ((left, 1 - right), (left + 1, right)):
            inside = min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)
            total += np.float32(weight_y * weight_x) * texels[inside].astype(np.float32)
    return total


def trilinear(levels: list[Texels], x: float, y: float, level: float) -> NDArray[np.float32]:
    """Between the two levels next to ``level``: float32[C]."""
    level = min(max(level, 0.0), len(levels) - 1.0)
    fine = int(level)
    coarse = min(fine + 1, len(levels) - 1)
    share = np.float32(level - fine)
    return (1 - share) * bilinear(levels[fine], x, y) + share * bilinear(levels[coarse], x, y)
