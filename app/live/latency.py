"""Latencies, of the latest frames: bounded memory for streams without an end."""

from __future__ import annotations

from collections import deque

from foveate.pipeline.timing import RECENT, percentile


class Latencies:
    """Seconds from a frame's arrival to its tokens."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=RECENT)

    def add(self, seconds: float) -> None:
        """Count one frame."""
        self._recent.append(seconds)

    def percentile(self, percent: int) -> float:
        """Seconds that so many percent of the latest frames do not exceed; 0.0 before the first."""
        return percentile(sorted(self._recent.copy()), percent)
