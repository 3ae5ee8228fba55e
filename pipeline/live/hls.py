"""HLS brings a segment of several seconds at once, and a new connection begins with the last segments again.

``Pacer`` spreads the pictures of a segment over time, ``Duplicates`` recognises those that an earlier connection
brought. Without the latter a playlist that is not extended any more would look like a stream, by one reconnection after
the other.
"""

from __future__ import annotations

from collections import deque

_SPEED = 1.1  # times the sender's, so that a backlog shrinks
_LONGEST = 0.5  # seconds that a picture is held back at most
_REMEMBERED = 4096  # pictures, more than a playlist's last segments hold


class Pacer:
    """Says how long to hold back each picture, so that they follow each other as they were taken."""

    def __init__(self) -> None:
        self._stamp: float | None = None  # of the latest picture
        self._released = 0.0  # when it was released

    def pause(self, stamp: float | None, now: float) -> float:
        """Seconds from ``now`` until a picture with the sender's ``stamp`` (seconds) is due; 0.0 where it is late."""
        step = 0.0 if stamp is None or self._stamp is None else (stamp - self._stamp) / _SPEED
        pause = min(_LONGEST, max(0.0, self._released + step - now)) if step > 0 else 0.0
        self._stamp = stamp
        self._released = now + pause
        return pause


class Duplicates:
    """The pictures of a connection and of those before it, by the sender's timestamp and a checksum."""

    def __init__(self, earlier: Duplicates | None = None) -> None:
        self._keys: deque[tuple[float, int]] = deque(maxlen=_REMEMBERED) if earlier is None else earlier._keys.copy()
        self._earlier = frozenset(self._keys)

    def seen(self, stamp: float | None, checksum: int) -> bool:
        """Whether an earlier connection brought the picture, with ``stamp`` in seconds. Remembers it if not."""
        if stamp is None:
            return False
        key = stamp, checksum
        if key in self._earlier:
            return True
        self._keys.append(key)
        return False
