"""The bounded queue between two threads: all waiting and cancelling between threads is here."""

import time
from queue import Empty, SimpleQueue
from typing import Any, Final

END: Final = object()  # what get() returns behind the last item
_WAKE: Final = object()  # wakes a waiting thread, so that it checks the flag
_GLANCE = 0.5  # seconds between checks of the flag while waiting


class Cancelled(BaseException):
    """The queue was cancelled. Not an Exception, so that no stage catches it by accident."""


class BoundedQueue:
    """Passes items from one thread to another; holds at most ``depth``.

    Built on two C queues, one of items and one of free slots, so that no Python code runs with a lock held: a
    KeyboardInterrupt at any instruction leaves the queue usable by the other side.

    Raises ValueError for a depth below 1.
    """

    def __init__(self, depth: int) -> None:
        if depth < 1:
            raise ValueError(f"depth must be at least 1, got {depth}")
        self._cancelled = False
        self._items: SimpleQueue[Any] = SimpleQueue()
        self._slots: SimpleQueue[Any] = SimpleQueue()
        for _ in range(depth):
            self._slots.put(None)

    @property
    def full(self) -> bool:
        """Whether there is no room for another item."""
        return self._slots.empty()

    def put(self, item: Any) -> None:
        """Append ``item``. Raises Cancelled, at once or while waiting for room."""
        self._take(self._slots)
        self._items.put(item)

    def get(self, limit: float | None = None) -> Any:
        """The oldest item, or END behind the last one. Raises Cancelled, also while items are left.

        Raises TimeoutError where nothing came for ``limit`` seconds.
        """
        item = self._take(self._items, limit)
        self._slots.put(None)
        return item

    def close(self) -> None:
        """Mark the end of the stream, behind the last item. Never blocks."""
        self._items.put(END)

    def cancel(self) -> None:
        """End every wait on either side, now and later. From any thread, any number of times."""
        self._cancelled = True
        self._items.put(_WAKE)
        self._slots.put(_WAKE)

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

    def _drop_oldest(self) -> Any:
        """Take the oldest item out and return it; None where there is none, or the queue is cancelled."""
        try:
            oldest = self._items.get_nowait()
        except Empty:  # the reader has just taken it, and is about to free the slot
            return None
        if oldest is _WAKE:
            return None
        self._slots.put(None)
        return oldest
