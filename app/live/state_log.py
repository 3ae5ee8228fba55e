"""The lines on standard error when a live source changes its state."""

import threading
import time
from collections import deque
from collections.abc import Callable

from foveate.pipeline.live.status import Status

_MANY = 10  # changes in a minute that are printed one by one
_MINUTE = 60.0  # seconds
_TROUBLE = {"stalled", "reconnecting"}


class StateLog:
    """Prints every change of state; of a source that changes all the time the latest one, once a minute."""

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        quiet: bool,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``quiet``: print trouble only."""
        self._say, self._quiet, self._now = say, quiet, now
        self._lock = threading.Lock()
        self._printed: deque[float] = deque(maxlen=_MANY)  # when the latest lines were written
        self._latest: Status | None = None  # of those held back
        self._changes = 0  # since the last line

    def hear(self, status: Status) -> None:
        """Print a change, or hold it back; but not a failure, of which the error tells. From any thread."""
        if status.state == "failed" or (self._quiet and status.state not in _TROUBLE):
            return
        with self._lock:
            self._changes += 1
            busy = len(self._printed) == _MANY and self._now() - self._printed[0] < _MINUTE
            if status.state != "closed" and (busy or self._latest is not None):
                self._latest = status
            else:
                self._print(status)

    def flush(self) -> None:
        """Print the latest change held back, if the last line is a minute old. From any thread."""
        with self._lock:
            if self._latest is not None and self._now() - self._printed[-1] >= _MINUTE:
                self._print(self._latest)
                self._printed.extend([self._now()] * _MANY)  # a quiet minute must pass before each is printed again

    def _print(self, status: Status) -> None:
        reason = f": {status.reason}" if status.reason else ""
        changes = f" (changes since the last line: {self._changes})" if self._changes > 1 else ""
        self._latest, self._changes = None, 0
        self._printed.append(self._now())
        self._say(f"foveate: {status.name}: {status.state}{reason}{changes}")
