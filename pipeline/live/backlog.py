"""The queue of live pictures: a burst is kept, a backlog that does not drain is dropped.

Pictures come in bursts after the reader or the network was busy for a moment; these are worth catching up with. Where
the reader is too slow for good, a backlog only makes every picture late. The time since the reader last caught up tells
these cases apart, as CoDel does for packets (Nichols and Jacobson 2012; RFC 8289).
"""

from __future__ import annotations

from collections import deque
from typing import Any

from foveate.pipeline.bounded_queue import BoundedQueue
from foveate.pipeline.live.status import FrameCounts

FEW = 3  # pictures that may wait for a reader that is too slow for good
_MOST = 32  # that may wait for one that was busy for a moment
_BYTES = 64 << 20  # that these may take
_PATIENCE = 1.0  # seconds that the reader gets to catch up
_OLDEST = 0.35  # seconds that a picture may wait meanwhile


class Backlog(BoundedQueue):
    """A BoundedQueue that drops its oldest item where the reader is too slow or pauses, and counts it."""

    def __init__(self, counts: FrameCounts) -> None:
        super().__init__(FEW)
        self.dropped = 0
        self._drops = True
        self._counts = counts
        self._most = FEW
        self._caught_up = counts.now()  # when the queue was last found empty, or the reader paused
        self._times: deque[float] = deque(maxlen=_MOST)  # when the latest items were put

    def allow(self, size: int) -> None:
        """Let as many items of ``size`` bytes wait as memory allows. Never fewer than before."""
        most = min(_MOST, _BYTES // max(1, size))
        for _ in range(most - self._most):
            self._slots.put(None)
        self._most = max(self._most, most)

    def keep_all(self) -> None:
        """Drop nothing from now on; ``put`` waits for room instead. For sources that end, which cannot be late."""
        self._drops = False

    def put(self, item: Any) -> None:
        """Append ``item``, after dropping what the reader has no time for. Raises Cancelled."""
        now, paused = self._counts.now(), self._counts.paused
        if paused or self._items.empty():
            self._caught_up = now
        most = FEW if paused or now - self._caught_up > _PATIENCE else self._most
        while self._drops and self._too_many(now, most):
            arrived = self._put(max(1, self._items.qsize()))
            if self._drop_oldest():
                self.dropped += 1
                self._counts.lose(arrived)
        super().put(item)
        self._times.append(now)

    def _too_many(self, now: float, most: int) -> bool:
        waiting = self._items.qsize()
        return waiting >= most or (waiting >= FEW and now - self._put(waiting) > _OLDEST)

    def _put(self, waiting: int) -> float:
        """When the oldest of so many waiting items was put."""
        return self._times[-min(waiting, len(self._times))]
