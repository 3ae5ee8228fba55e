"""How a live source fares: its states, and a board that anyone may read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

State = Literal["connecting", "streaming", "stalled", "reconnecting", "closed", "failed"]
"""connecting: the first try. streaming: pictures come. stalled: connected, but none came for a while. reconnecting: the
connection is lost and tried again. closed: ended on purpose. failed: given up, and why is in the reason."""


@dataclass(frozen=True, slots=True)
class Status:
    """A live source at one moment."""

    name: str  # the address, passwords removed
    state: State = "connecting"
    reason: str = ""  # of the state, in one line; may be empty
    since: float = 0.0  # when the state began, seconds by time.monotonic()
    received: int = 0  # pictures decoded
    dropped: int = 0  # of these, those that nobody had time for
    skipped: int = 0  # of these, those that nobody took because of a pause
    connections: int = 0  # that led to a picture
    tries: int = 0  # connections tried
    arrived: float | None = None  # when the latest picture came, seconds by time.monotonic()


Listener = Callable[[Status], None]
"""Called at every change of state, by the thread that reads the source."""


class Board:
    """The latest Status. Written by the thread that reads the source, read by any."""

    def __init__(self, name: str, listener: Listener | None = None) -> None:
        self._lock = threading.Lock()
        self._status = Status(name, since=time.monotonic())
        self._listener = listener

    @property
    def status(self) -> Status:
        """The latest."""
        return self._status

    def enter(self, state: State, reason: str = "") -> None:
        """Change the state. The listener is told, unless nothing changed."""
        with self._lock:
            before = self._status
            if before.state in ("closed", "failed") or (before.state, before.reason) == (state, reason):
                return
            self._status = replace(before, state=state, reason=reason, since=time.monotonic())
        if self._listener is not None:
            self._listener(self._status)

    def tried(self) -> None:
        """Count one try to connect."""
        with self._lock:
            self._status = replace(self._status, tries=self._status.tries + 1)

    def connected(self) -> None:
        """Count a connection that led to a picture."""
        with self._lock:
            self._status = replace(self._status, connections=self._status.connections + 1)
