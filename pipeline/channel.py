"""The bounded channel between two threads: waiting and cancelling live here and nowhere else."""

from __future__ import annotations

import time
from queue import Empty, SimpleQueue
from typing import Any, Final

END: Final = object()  # what get() returns behind the last item
_WAKE: Final = object()  # ends a wait, so that it looks at the flags
_GLANCE = 0.5  # seconds after which any wait looks at the flags by itself


class Cancelled(BaseException):
    """The channel is no longer served. Not an Exception, so that no stage catches it by accident."""


class Channel:
    """At most ``depth`` items on their way from one thread to one other.

    Built on two C queues, one of items and one of free places, because no Python code then runs with a lock
    held: a KeyboardInterrupt at any instruction leaves the channel usable by the other side.

    Raises ValueError for a depth below 1.
    """

    def __init__(self, depth: int) -> None:
        if depth < 1:
            raise ValueError(f"depth must be at least 1, got {depth}")
        self._cancelled = False
        self._items: SimpleQueue[Any] = SimpleQueue()
        self._places: SimpleQueue[Any] = SimpleQueue()
        for _ in range(depth):
            self._places.put(None)

    @property
    def full(self) -> bool:
        """Whether there is no room for another item."""
        return self._places.empty()

    def put(self, item: Any) -> None:
        """Append ``item``. Raises Cancelled, at once or while waiting for room."""
        self._take(self._places)
        self._items.put(item)

    def get(self, limit: float | None = None) -> Any:
        """The oldest item, or END behind the last one. Raises Cancelled, also while items are left.

        Raises TimeoutError where nothing came for ``limit`` seconds.
        """
        item = self._take(self._items, limit)
        self._places.put(None)
        return item

    def close(self) -> None:
        """Mark the end of the stream, behind the last item. Never blocks."""
        self._items.put(END)

    def cancel(self) -> None:
        """End every wait on either side, now and later. From any thread, any number of times."""
        self._cancelled = True
        self._items.put(_WAKE)
        self._places.put(_WAKE)

    def _take(self, queue: SimpleQueue[Any], limit: float | None = None) -> Any:
        deadline = None if limit is None else time.monotonic() + limit
        while True:
            if self._cancelled:
                raise Cancelled
            left = _GLANCE if deadline is None else min(_GLANCE, deadline - time.monotonic())
            try:
                item = queue.get(timeout=max(0.0, left))
            except Empty:
                if left <= 0:
                    raise TimeoutError from None
                continue
            if item is not _WAKE:
                return item

    def _drop_oldest(self) -> bool:
        """Take the oldest item away; False where there is none, or the channel is cancelled."""
        try:
            oldest = self._items.get_nowait()
        except Empty:  # the reader has just taken it, and is about to free the place
            return False
        if oldest is _WAKE:
            return False
        self._places.put(None)
        return True
