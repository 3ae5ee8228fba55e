"""What is told of a source that changes its state."""

from __future__ import annotations

from foveate.app.live.news import News
from foveate.pipeline.live.state import State, Status


class Clock:
    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def heard(quiet: bool = False) -> tuple[News, list[str], Clock]:
    said: list[str] = []
    clock = Clock()
    return News(said.append, quiet=quiet, now=clock), said, clock


def flap(news: News, clock: Clock, times: int, seconds: float) -> None:
    """Lose the connection and get it back so many times, one change in so many seconds."""
    states: list[State] = ["reconnecting", "streaming"]
    for number in range(times):
        news.hear(Status("camera", states[number % 2], "" if number % 2 else "hung up"))
        clock.seconds += seconds
        news.catch_up()


def test_each_change_has_a_line() -> None:
    news, said, clock = heard()
    flap(news, clock, 20, 15.0)
    assert said == ["foveate: camera: reconnecting: hung up", "foveate: camera: streaming"] * 10


def test_a_source_that_changes_all_the_time_gets_one_line_a_minute() -> None:
    news, said, clock = heard()
    flap(news, clock, 10 + 3600, 1.0)
    assert len(said) == 10 + 60
    assert "(changes since the last line: " in said[-1]


def test_the_last_line_is_how_it_fares() -> None:
    news, said, clock = heard()
    flap(news, clock, 12, 0.1)
    assert len(said) == 10
    clock.seconds += 58.0
    news.catch_up()
    assert len(said) == 10
    clock.seconds += 2.0
    news.catch_up()
    news.catch_up()
    assert said[10:] == ["foveate: camera: streaming (changes since the last line: 2)"]
    clock.seconds += 60.0
    flap(news, clock, 2, 0.1)
    assert said[11:] == ["foveate: camera: reconnecting: hung up", "foveate: camera: streaming"]


def test_the_end_is_told_at_once() -> None:
    news, said, clock = heard()
    flap(news, clock, 11, 0.1)
    news.hear(Status("camera", "failed", "refused"))
    clock.seconds += 100.0
    news.catch_up()
    assert said[10:] == ["foveate: camera: failed: refused (changes since the last line: 2)"]


def test_quiet_tells_of_trouble_only() -> None:
    news, said, clock = heard(quiet=True)
    flap(news, clock, 4, 1.0)
    news.hear(Status("camera", "stalled"))
    news.hear(Status("camera", "closed"))
    assert said == ["foveate: camera: reconnecting: hung up"] * 2 + ["foveate: camera: stalled"]


def test_of_a_single_source_the_error_tells_the_failure() -> None:
    said: list[str] = []
    news = News(said.append, quiet=False, alone=True)
    news.hear(Status("camera", "connecting"))
    news.hear(Status("camera", "failed", "refused"))
    assert said == ["foveate: camera: connecting"]
