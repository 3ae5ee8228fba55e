"""The counts of one live source over all its connections."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable


class Ledger:
    """Counts pictures. No count ever falls, and the latest arrival stays known while a connection follows another."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.received = 0  # pictures decoded
        self.dropped = 0  # of these, those that a reader had no time for
        self.skipped = 0  # of these, those that nobody took because of a pause
        self.arrived: float | None = None  # when the latest picture came, seconds by ``now``
        self._paused_until = -math.inf  # infinite during a pause
        self._lock = threading.Lock()

    @property
    def paused(self) -> bool:
        """Whether nobody takes pictures, on purpose."""
        return self._paused_until == math.inf

    def pause(self) -> None:
        """From now on nobody takes pictures, on purpose. From any thread."""
        self._paused_until = math.inf

    def resume(self) -> None:
        """Pictures are taken again. From any thread."""
        if self.paused:
            self._paused_until = self.now()

    def receive(self) -> int:
        """Count a picture that has come. Returns its number, from 0."""
        with self._lock:
            self.arrived = self.now()
            self.received += 1
            return self.received - 1

    def lose(self, came: float) -> None:
        """Count a picture that nobody took, which came at ``came``: skipped if it came before or during a pause."""
        with self._lock:
            if came <= self._paused_until:
                self.skipped += 1
            else:
                self.dropped += 1
