"""Spreads pictures that come in bursts, a segment of several seconds at once, as HLS does."""

from __future__ import annotations

_SPEED = 1.1  # times the sender's: what has piled up is caught up with
_LONGEST = 0.5  # seconds that one picture is held back at most


class Pace:
    """Says how long to hold back each picture, so that they follow each other as they were taken."""

    def __init__(self) -> None:
        self._stamp: float | None = None  # of the latest picture
        self._released = 0.0  # when it was let go

    def pause(self, stamp: float | None, now: float) -> float:
        """Seconds from ``now`` until a picture with the sender's ``stamp`` (seconds) is due; 0.0 where it is late."""
        step = 0.0 if stamp is None or self._stamp is None else (stamp - self._stamp) / _SPEED
        pause = min(_LONGEST, max(0.0, self._released + step - now)) if step > 0 else 0.0
        self._stamp = stamp
        self._released = now + pause
        return pause
