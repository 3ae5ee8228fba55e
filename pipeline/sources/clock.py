"""Presentation times: from the stream's timestamps where they are sane, made up where they are not."""

import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

FORWARD_LIMIT = 10.0  # seconds beyond the expected time from which a timestamp may be a stray one, or jump
BACKWARD_LIMIT = 4.0  # mean frame durations; decoders disorder neighbours, they do not go further back
_NUDGE = 0.25  # of a frame's duration: how far a repeated time is moved; each further one half as far,
# so that however many there are, they do not run ahead of the next true time

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stamped(Generic[T]):
    """A picture as decoded: its time in seconds after the first timestamp, and how long it stands."""

    item: T
    stamp: float | None
    duration: float | None


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """A picture with its final time. ``jumped``: the stream's times jumped just before it."""

    item: T
    time: float  # seconds
    jumped: bool = False
    length: float = 0.0  # seconds for which it is shown if it is the last


def timed(
    entries: Iterable[Stamped[T]], nominal: float, spliced: bool, *, from_beginning: bool = True
) -> Generator[Timed[T], None, None]:
    """Give every picture a time: strictly increasing, the first 0.0, or its stamp if not ``from_beginning``.

    A single missing or stray timestamp is replaced from its neighbours, which needs the next picture (only then is
    one held back). Timestamps that go back beyond ``BACKWARD_LIMIT`` and stay there are a
    discontinuity, and the times go on from the last. Those that go ahead are kept: beyond ``FORWARD_LIMIT`` they
    are a discontinuity where the stream may be ``spliced``; elsewhere time is continuous, and the picture before was
    shown that long. A smaller step back, or a repeated time, is moved slightly ahead. ``nominal`` is a
    frame's duration in seconds where nothing else is known.
    """
    clock = _Clock(nominal, spliced, None if from_beginning else 0.0)
    held: Stamped[T] | None = None
    for entry in entries:
        if held is not None:
            yield clock.settle(held, entry)
            held = None
        if clock.is_plain(entry):
            yield clock.place(entry)
        else:
            held = entry
    if held is not None:
        yield clock.settle(held, None)


class _Clock:
    def __init__(self, nominal: float, spliced: bool, shift: float | None) -> None:
        self._nominal = nominal
        self._spliced = spliced
        self._nudge = 0.0  # how far the next repeated time is moved, in seconds
        self._shift = shift  # what is taken from a stamp; None before the first stamp
        self._first = 0.0
        self._last: float | None = None
        self._length = nominal  # how long the last picture stands
        self._count = 0

    def is_plain(self, entry: Stamped[T]) -> bool:
        """True where the entry can be placed without knowing the next."""
        if self._last is None:
            return True
        if entry.stamp is None:
            return False
        if self._shift is None:
            return True
        seconds = entry.stamp - self._shift
        return self._backward_limit() <= seconds <= self._expected() + FORWARD_LIMIT

    def place(self, entry: Stamped[T], jumped: bool = False) -> Timed[T]:
        """The entry, timed by the present offset."""
        if self._last is None:
            seconds = self._first = (entry.stamp or 0.0) - self._shift if self._shift is not None else 0.0
        elif entry.stamp is None:
            seconds = self._expected()
        else:
            seconds = entry.stamp - (self._shift or 0.0)
        if entry.stamp is not None and self._shift is None:
            seconds = self._expected() if self._last is not None else 0.0
            self._shift = entry.stamp - seconds
        return self._advance(entry, seconds, jumped)

    def settle(self, held: Stamped[T], following: Stamped[T] | None) -> Timed[T]:
        """The entry held back, now that the next one is known (None: there is none)."""
        after = self._on_line(following)
        if after is not None:
            return self._advance(held, (self._last_seconds() + after) / 2, False)
        if held.stamp is None:
            return self._advance(held, self._expected(), False)
        back = held.stamp - (self._shift or 0.0) < self._last_seconds()
        if back:
            self._shift = held.stamp - self._expected()
        return self.place(held, jumped=back or self._spliced)

    def _on_line(self, entry: Stamped[T] | None) -> float | None:
        """The entry's time if it continues the times so far, else None."""
        if entry is None or entry.stamp is None or self._shift is None or not self.is_plain(entry):
            return None
        seconds = entry.stamp - self._shift
        return seconds if seconds > self._last_seconds() else None

    def _advance(self, entry: Stamped[T], seconds: float, jumped: bool) -> Timed[T]:
        if self._last is None or seconds > self._last:
            self._nudge = _NUDGE * self._nominal
        else:
            seconds = max(self._last + self._nudge, math.nextafter(self._last, math.inf))
            self._nudge /= 2
        self._last = seconds
        self._length = entry.duration or self._nominal
        self._count += 1
        return Timed(entry.item, seconds, jumped, self._length)

    def _last_seconds(self) -> float:
        return 0.0 if self._last is None else self._last

    def _expected(self) -> float:
        return self._last_seconds() + self._length

    def _backward_limit(self) -> float:
        last = self._last_seconds()
        mean = max(self._nominal, (last - self._first) / self._count)
        return last - BACKWARD_LIMIT * mean
