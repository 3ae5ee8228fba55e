"""Time measurement of stages."""

import time
from array import array
from dataclasses import dataclass

_BRIEF = 1e-4  # seconds: a turn so short is counted as computed, without asking for the thread's processor time

RECENT = 4096  # percentiles are over this many latest items: bounded memory for streams without an end


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage so far. All times in seconds, since the stage's thread started."""

    name: str
    items: int  # yielded
    busy: float  # computing, or waiting for the interpreter's lock
    busy_cpu: float  # processor time of the stage's thread; what libraries do in threads of theirs is not in it
    waiting_input: float  # for the stage before it
    waiting_room: float  # for the stage behind it
    p50: float  # busy time per item, over the last RECENT items; 0.0 before the first
    p90: float
    p99: float


class StageClock:
    """Adds up the times of one stage. Written by that stage's thread alone, read by any."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.items = 0
        self.busy = 0.0
        self.busy_cpu = 0.0
        self.waiting_input = 0.0
        self.waiting_room = 0.0
        self._before = 0.0  # of ``busy``, when the last item was made
        self._recent = array("d", bytes(8 * RECENT))

    def made(self) -> None:
        """Count one item, on which all was spent that was busy since the last one."""
        self._recent[self.items % RECENT] = self.busy - self._before
        self._before = self.busy
        self.items += 1

    def report(self) -> StageReport:
        """What was counted so far."""
        recent = sorted(self._recent[: self.items])
        return StageReport(
            name=self.name,
            items=self.items,
            busy=self.busy,
            busy_cpu=self.busy_cpu,
            waiting_input=self.waiting_input,
            waiting_room=self.waiting_room,
            p50=percentile(recent, 50),
            p90=percentile(recent, 90),
            p99=percentile(recent, 99),
        )


class Turns:
    """Attributes the time of a thread that several stages share to the stage that is running."""

    def __init__(self) -> None:
        self._clock: StageClock | None = None
        self._since = time.perf_counter()
        self._cpu = time.thread_time()  # when it was last read
        self._counted = 0.0  # processor time that was counted since, unread

    def give(self, clock: StageClock | None) -> float:
        """From now on, count time for ``clock``; None: for no stage. Returns the present time in seconds."""
        now, last = time.perf_counter(), self._clock
        busy = now - self._since
        cpu = self._computed(busy)
        if last is not None:
            last.busy += busy
            last.busy_cpu += cpu
        self._clock, self._since = clock, now
        return now

    def _computed(self, busy: float) -> float:
        """Processor time of a turn of so many seconds. Reading it is a system call, which a brief turn is not worth.

        What was counted too much in brief turns is missing in the next long one, so sums stay right.
        """
        if busy < _BRIEF:
            self._counted += busy
            return busy
        read = time.thread_time()
        spent, self._cpu = read - self._cpu - self._counted, read
        self._counted = max(0.0, -spent)
        return max(0.0, spent)


def percentile(ordered: list[float], percent: int) -> float:
    """The nearest-rank percentile of ``ordered``: the least value that ``percent`` of all do not exceed."""
    if not ordered:
        return 0.0
    return ordered[-(-len(ordered) * percent // 100) - 1]
