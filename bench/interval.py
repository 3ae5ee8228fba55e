"""How sure a share is that was counted."""

from __future__ import annotations

from typing import Final

_Z: Final = 1.959964  # 95% of a normal distribution lie within so many deviations


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95% score interval of a share (Wilson, 1927), in [0, 1]; all of it where nothing was counted."""
    if count == 0:
        return 0.0, 1.0
    share, square = right / count, _Z * _Z
    scale = 1 + square / count
    middle = (share + square / (2 * count)) / scale
    reach = _Z / scale * (share * (1 - share) / count + square / (4 * count * count)) ** 0.5
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))  # rounding aside, it holds it
