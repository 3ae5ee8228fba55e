"""What is told of a source that changes its state."""

from foveate.app.live.state_log import StateLog
from foveate.pipeline.live.status import State, Status


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def heard(quiet: bool = False) -> tuple[StateLog, list[str], Clock]:
    said: list[str] = []
    clock = Clock()
    return StateLog(said.append, quiet=quiet, now=clock), said, clock


def flap(log: StateLog, clock: Clock, times: int, seconds: float) -> None:
    """Lose the connection and get it back so many times, one change in so many seconds."""
    states: list[State] = ["reconnecting", "streaming"]
    for number in range(times):
        log.hear(Status("camera", states[number % 2], "" if number % 2 else "hung up"))
        clock.seconds += seconds
        log.flush()


def test_each_change_has_a_line() -> None:
    log, said, clock = heard()
    flap(log, clock, 20, 15.0)
    assert said == ["foveate: camera: reconnecting: hung up", "foveate: camera: streaming"] * 10


def test_a_source_that_changes_all_the_time_gets_one_line_a_minute() -> None:
    log, said, clock = heard()
    flap(log, clock, 10 + 3600, 1.0)
    assert len(said) == 10 + 60
    assert "(changes since the last line: " in said[-1]


def test_the_last_line_is_how_it_fares() -> None:
    log, said, clock = heard()
    flap(log, clock, 12, 0.1)
    assert len(said) == 10
    clock.seconds += 58.0
    log.flush()
    assert len(said) == 10
    clock.seconds += 2.0
    log.flush()
    log.flush()
    assert said[10:] == ["foveate: camera: streaming (changes since the last line: 2)"]
    clock.seconds += 60.0
    flap(log, clock, 2, 0.1)
    assert said[11:] == ["foveate: camera: reconnecting: hung up", "foveate: camera: streaming"]


def test_the_end_is_told_at_once() -> None:
    log, said, clock = heard()
    flap(log, clock, 11, 0.1)
    log.hear(Status("camera", "closed"))
    clock.seconds += 100.0
    log.flush()
    assert said[10:] == ["foveate: camera: closed (changes since the last line: 2)"]


def test_quiet_tells_of_trouble_only() -> None:
    log, said, clock = heard(quiet=True)
    flap(log, clock, 4, 1.0)
    log.hear(Status("camera", "stalled"))
    log.hear(Status("camera", "closed"))
    assert said == ["foveate: camera: reconnecting: hung up"] * 2 + ["foveate: camera: stalled"]


def test_the_error_tells_a_failure() -> None:
    said: list[str] = []
    log = StateLog(said.append, quiet=False)
    log.hear(Status("camera", "connecting"))
    log.hear(Status("camera", "failed", "refused"))
    assert said == ["foveate: camera: connecting"]
