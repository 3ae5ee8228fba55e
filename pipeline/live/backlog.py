"""The queue of live pictures: a burst is kept, a backlog that does not drain is dropped.

Pictures come in bursts after the reader or the network was busy for a moment; these are worth catching up with. Where
the reader is too slow for good, a backlog only makes every picture late. The time since the reader last caught up tells
these cases apart when a picture is put, and how long a picture has waited does so when it is taken, as CoDel does for
packets (Nichols and Jacobson 2012; RFC 8289).
"""

from collections import deque
from typing import Any, NamedTuple

from foveate.pipeline.bounded_queue import END, BoundedQueue
from foveate.pipeline.live.status import FrameCounts

FEW = 3  # pictures that may wait for a reader that is too slow for good
_MOST = 32  # that may wait for one that was busy for a moment
_BYTES = 64 << 20  # that these may take
_PATIENCE = 1.0  # seconds that the reader gets to catch up; a picture that waited for longer is not handed on
_OLDEST = 0.35  # seconds that a picture may wait meanwhile, before others are put behind it


class _Waiting(NamedTuple):
    """An item in the queue."""

    item: Any
    put: float  # when, by FrameCounts.now
    number: int  # of all that were put, from 1


class Backlog(BoundedQueue):
    """A BoundedQueue that drops its oldest items where the reader is too slow or pauses, and counts them."""

    def __init__(self, counts: FrameCounts) -> None:
        super().__init__(FEW)
        self._drops = True
        self._number = 0  # items that were put
        self._counts = counts
        self._most = FEW
        self._caught_up = counts.now()  # when the queue was last found empty, or the reader paused
        self._times: deque[float] = deque(maxlen=_MOST)
        """When the latest items were put, as the queue cannot be looked into. Not the items: they would live on here
        after they were taken."""

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
            dropped = self._drop_oldest()
            if dropped is not None:
                self._counts.lose(dropped.put)
        super().put(_Waiting(item, now, self._number + 1))
        self._number += 1
        self._times.append(now)

    def get(self, limit: float | None = None) -> Any:
        """The oldest item that has not waited for too long, or else the latest; END behind it. As BoundedQueue.get."""
        while (waiting := super().get(limit)) is not END and self._is_stale(waiting):
            self._counts.lose(waiting.put)
        return waiting if waiting is END else waiting.item

    def _is_stale(self, waiting: _Waiting) -> bool:
        """Whether an item has waited for too long, and a newer one is there."""
        newer = waiting.number < self._number
        return self._drops and newer and self._counts.now() - waiting.put > _PATIENCE

    def _too_many(self, now: float, most: int) -> bool:
        waiting = min(self._items.qsize(), len(self._times))
        return waiting >= most or (waiting >= FEW and now - self._times[-waiting] > _OLDEST)
