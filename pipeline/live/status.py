"""The state and the counts of a live source, for any thread to read."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

State = Literal["connecting", "streaming", "stalled", "reconnecting", "closed", "failed"]
"""connecting: the first attempt. streaming: pictures arrive. stalled: connected, but none arrived for a while.
reconnecting: the connection is lost, and is tried again. closed: ended on purpose. failed: given up; the reason says
why."""


@dataclass(frozen=True, slots=True)
class Status:
    """A live source at one moment."""

    name: str  # the address, passwords removed
    state: State = "connecting"
    reason: str = ""  # for the state, in one line; may be empty
    since: float = 0.0  # when the state began, seconds by time.monotonic()
    received: int = 0  # pictures that arrived
    dropped: int = 0  # of these, those that processing was too slow for
    skipped: int = 0  # of these, those that came during a pause, or while the decoder was made
    connections: int = 0  # that brought a picture
    tries: int = 0  # attempts to connect
    arrived: float | None = None  # when the latest picture arrived, seconds by time.monotonic()


Listener = Callable[[Status], None]
"""Called at every change of state, by the thread that reads the source."""


class StatusBoard:
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
        """Change the state, and tell the listener. Does nothing if nothing changed, or the source has ended."""
        with self._lock:
            before = self._status
            if before.state in ("closed", "failed") or (before.state, before.reason) == (state, reason):
                return
            self._status = replace(before, state=state, reason=reason, since=time.monotonic())
        if self._listener is not None:
            self._listener(self._status)

    def tried(self) -> None:
        """Count an attempt to connect."""
        with self._lock:
            self._status = replace(self._status, tries=self._status.tries + 1)

    def connected(self) -> None:
        """Count a connection that brought a picture."""
        with self._lock:
            self._status = replace(self._status, connections=self._status.connections + 1)


class FrameCounts:
    """Counts the pictures of one source over all its connections. No count ever falls, as monitoring needs."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.received = 0  # pictures that arrived
        self.dropped = 0  # of these, those that processing was too slow for
        self.skipped = 0  # of these, those that came during a pause, or while the decoder was made
        self.arrived: float | None = None  # when the latest picture arrived, seconds by ``now``
        self._paused_until = -math.inf  # infinite during a pause
        self._lock = threading.Lock()

    @property
    def paused(self) -> bool:
        """Whether the caller has paused."""
        return self._paused_until == math.inf

    def pause(self) -> None:
        """Count what is dropped from now on as skipped. From any thread."""
        self._paused_until = math.inf

    def resume(self) -> None:
        """End the pause. From any thread."""
        if self.paused:
            self._paused_until = self.now()

    def receive(self) -> int:
        """Count a picture that arrived. Returns its number, from 0."""
        with self._lock:
            self.arrived = self.now()
            self.received += 1
            return self.received - 1

    def pass_over(self, number: int) -> None:
        """Count pictures that arrived, and were left out on purpose."""
        with self._lock:
            self.received += number
            self.skipped += number

    def lose(self, arrived: float) -> None:
        """Count a picture that was thrown away: skipped if it ``arrived`` before or during a pause, else dropped."""
        with self._lock:
            if arrived <= self._paused_until:
                self.skipped += 1
            else:
                self.dropped += 1
