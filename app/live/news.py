"""What standard error tells of how one source fares."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from foveate.pipeline.live.state import Status

_MANY = 10  # changes in a minute that are told one by one
_MINUTE = 60.0  # seconds
_TROUBLE = {"stalled", "reconnecting", "failed"}
_LAST = {"closed", "failed"}


class News:
    """Tells every change of state; of a source that changes all the time the latest one, once a minute."""

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        quiet: bool,
        alone: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``quiet``: tell of trouble only. ``alone``: where it fails, the program ends with that error."""
        self._say, self._quiet, self._alone, self._now = say, quiet, alone, now
        self._lock = threading.Lock()
        self._told: deque[float] = deque(maxlen=_MANY)  # when the latest lines were written
        self._latest: Status | None = None  # of those that were held back
        self._changes = 0  # since the last line

    def hear(self, status: Status) -> None:
        """Take note of a change. From any thread."""
        if (self._quiet and status.state not in _TROUBLE) or (self._alone and status.state == "failed"):
            return
        with self._lock:
            self._changes += 1
            busy = len(self._told) == _MANY and self._now() - self._told[0] < _MINUTE
            if status.state not in _LAST and (busy or self._latest is not None):
                self._latest = status
            else:
                self._tell(status)

    def catch_up(self) -> None:
        """Tell the latest of what was held back, if the last line is a minute old. From any thread."""
        with self._lock:
            if self._latest is not None and self._now() - self._told[-1] >= _MINUTE:
                self._tell(self._latest)
                self._told.extend([self._now()] * _MANY)  # another minute must be calm before each is told again

    def _tell(self, status: Status) -> None:
        reason = f": {status.reason}" if status.reason else ""
        changes = f" (changes since the last line: {self._changes})" if self._changes > 1 else ""
        self._latest, self._changes = None, 0
        self._told.append(self._now())
        self._say(f"foveate: {status.name}: {status.state}{reason}{changes}")
