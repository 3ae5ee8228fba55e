"""Times of live pictures: from the sender's timestamps where these are plausible, else from the arrival."""

from dataclasses import dataclass

JUMP = 10.0  # seconds by which a timestamp may run ahead of the clock; further is a discontinuity
BACK = 1.0  # seconds by which it may lie before the last one; further is a discontinuity
_NUDGE = 0.001  # seconds by which a repeated time is moved
_DRIFT = 0.001  # seconds per second by which the sender's clock may differ from this one


@dataclass(frozen=True, slots=True)
class Placed:
    """The times of a picture."""

    time: float  # seconds, strictly increasing; the first is 0.0
    captured: float  # time.monotonic(); see frames.LiveTimes
    jumped: bool  # the times jumped just before it


class LiveClock:
    """Gives the pictures of one source their times, over all its connections."""

    def __init__(self) -> None:
        self._began: float | None = None  # arrival of the very first picture
        self._last = 0.0  # seconds of the latest picture
        self._shift: float | None = None  # from timestamp to time; None: to be determined
        self._stamp = 0.0  # the latest one
        self._arrived = 0.0
        self._lag: float | None = None  # least recent (arrival - stamp)

    def reconnected(self) -> None:
        """Forget the offset: a new connection may start at any timestamp."""
        self._shift = self._lag = None

    def place(self, stamp: float | None, arrived: float) -> Placed:
        """Place a picture with the sender's ``stamp`` in seconds, None if it has none, that arrived at ``arrived``.

        Where the stamps jump, or there are none, the time since the latest picture is taken from the arrivals. Small
        steps back and repeated times are nudged ahead.
        """
        if self._began is None:
            self._began = self._arrived = arrived
            self._last = -_NUDGE
        jumped = self._jumped(stamp, arrived)
        if jumped:
            self.reconnected()
        by_arrival = max(0.0, self._last) + (arrived - self._arrived)
        if stamp is None:
            seconds = by_arrival
        else:
            self._shift = by_arrival - stamp if self._shift is None else self._shift
            seconds = stamp + self._shift
        self._last = max(seconds, self._last + _NUDGE)
        captured = self._captured(stamp, arrived)
        self._arrived = arrived
        self._stamp = self._stamp if stamp is None else stamp
        return Placed(self._last, captured, jumped)

    def _jumped(self, stamp: float | None, arrived: float) -> bool:
        if stamp is None or self._shift is None:
            return False
        step = stamp - self._stamp
        return step < -BACK or step > (arrived - self._arrived) + JUMP

    def _captured(self, stamp: float | None, arrived: float) -> float:
        """The sender's time by this machine's clock: never after the arrival, and following its drift."""
        if stamp is None:
            return arrived
        lag = arrived - stamp
        if self._lag is None:
            self._lag = lag
        else:
            self._lag = min(lag, self._lag + _DRIFT * max(0.0, arrived - self._arrived))
        return stamp + self._lag
