"""Latencies: a histogram of all frames and percentiles of the latest, in bounded memory, for endless streams."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from itertools import accumulate
from typing import Final, NamedTuple

from foveate.pipeline.timing import RECENT, percentile

BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # seconds


class Histogram(NamedTuple):
    """All latencies so far."""

    cumulative: tuple[int, ...]  # frames that took no longer than each of BOUNDS, and last all frames
    total: float  # seconds, summed over all frames

    @staticmethod
    def empty() -> Histogram:
        """Of no frames."""
        return Histogram((0,) * (len(BOUNDS) + 1), 0.0)

    def plus(self, other: Histogram) -> Histogram:
        """Of the frames of both."""
        pairs = zip(self.cumulative, other.cumulative, strict=True)
        return Histogram(tuple(mine + theirs for mine, theirs in pairs), self.total + other.total)


class Latencies:
    """Seconds from a frame's arrival to its tokens. Written by one thread, read by any."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._counts = [0] * (len(BOUNDS) + 1)
        self._total = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count one frame."""
        with self._lock:
            self._recent.append(seconds)
            self._counts[bisect_left(BOUNDS, seconds)] += 1
            self._total += seconds

    def histogram(self) -> Histogram:
        """Of all frames so far."""
        with self._lock:
            return Histogram(tuple(accumulate(self._counts)), self._total)

    def percentile(self, percent: int) -> float:
        """Seconds that so many percent of the latest frames do not exceed; 0.0 before the first."""
        return percentile(sorted(self._recent.copy()), percent)
