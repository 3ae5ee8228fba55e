"""Where the time of each stage goes."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass
from typing import NamedTuple

RECENT = 4096  # percentiles are over this many latest items: bounded memory for streams without an end


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage so far. All times in seconds, since the stage's thread started."""

    name: str
    items: int  # yielded
    dropped: int  # by the channel behind it
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
        self._input_cpu = 0.0
        self._recent = array("d", bytes(8 * RECENT))

    def lap(self) -> Lap:
        """Start measuring; how it ends says what it was."""
        return Lap(self, time.perf_counter(), time.thread_time(), self.waiting_input, self._input_cpu)

    def worked(self, lap: Lap) -> float:
        """Count as busy what has passed since ``lap`` began, less the waiting for input. Returns it, in seconds."""
        seconds = time.perf_counter() - lap.begin - (self.waiting_input - lap.input)
        self.busy += seconds
        self.busy_cpu += time.thread_time() - lap.begin_cpu - (self._input_cpu - lap.input_cpu)
        return seconds

    def made(self, seconds: float) -> None:
        """Count one item that took ``seconds`` of busy time."""
        self._recent[self.items % RECENT] = seconds
        self.items += 1

    def waited(self, lap: Lap) -> None:
        """Count as waiting for input what has passed since ``lap`` began."""
        self.waiting_input += time.perf_counter() - lap.begin
        self._input_cpu += time.thread_time() - lap.begin_cpu

    def report(self, dropped: int) -> StageReport:
        """What was counted so far."""
        recent = sorted(self._recent[: self.items])
        return StageReport(
            name=self.name,
            items=self.items,
            dropped=dropped,
            busy=self.busy,
            busy_cpu=self.busy_cpu,
            waiting_input=self.waiting_input,
            waiting_room=self.waiting_room,
            p50=percentile(recent, 50),
            p90=percentile(recent, 90),
            p99=percentile(recent, 99),
        )


class Lap(NamedTuple):
    """A stretch of time that a clock measures: where it stood at the beginning."""

    clock: StageClock
    begin: float
    begin_cpu: float
    input: float
    input_cpu: float

    def made(self) -> None:
        """It was busy, and led to an item."""
        self.clock.made(self.clock.worked(self))

    def rested(self) -> None:
        """It was busy and led to no item, such as what a stage does behind its last one."""
        self.clock.worked(self)

    def waited(self) -> None:
        """It was waiting for input."""
        self.clock.waited(self)


def percentile(ordered: list[float], percent: int) -> float:
    """The nearest-rank percentile of ``ordered``: the least value that ``percent`` of all do not exceed."""
    if not ordered:
        return 0.0
    return ordered[-(-len(ordered) * percent // 100) - 1]
