"""Times of live pictures; every expected value is worked out by hand."""

import pytest

from foveate.pipeline.live.backoff import Backoff
from foveate.pipeline.live.clock import LiveClock


def place(stamps: list[float | None], arrivals: list[float]) -> list[tuple[float, float, bool]]:
    """Each picture's seconds, captured and jumped."""
    clock = LiveClock()
    placed = [clock.place(stamp, arrived) for stamp, arrived in zip(stamps, arrivals, strict=True)]
    return [(round(p.time, 6), round(p.captured, 6), p.jumped) for p in placed]


def test_the_senders_times_count_however_late_pictures_come() -> None:
    # The second picture comes 0.3 s late; it was taken when the sender says.
    assert place([5.0, 5.04, 5.08], [100.0, 100.34, 100.35]) == [
        (0.0, 100.0, False),
        (0.04, pytest.approx(100.04, abs=1e-3), False),  # the drift allowed for is 0.1%
        (0.08, pytest.approx(100.08, abs=1e-3), False),
    ]


def test_without_timestamps_arrival_counts() -> None:
    assert place([None, None, None], [7.0, 7.1, 7.5]) == [(0.0, 7.0, False), (0.1, 7.1, False), (0.5, 7.5, False)]


def test_a_time_that_comes_again_is_moved_a_little() -> None:
    seconds = [p[0] for p in place([1.0, 1.04, 1.04, 1.0, 1.08], [10.0, 10.04, 10.08, 10.12, 10.16])]
    assert seconds == [0.0, 0.04, 0.041, 0.042, 0.08]


@pytest.mark.parametrize("stamp", [0.0, -300.0, 1e6])
def test_a_jump_goes_on_by_arrival_and_is_a_discontinuity(stamp: float) -> None:
    first = [50.0, 50.04]
    placed = place([*first, stamp, stamp + 0.04], [10.0, 10.04, 10.1, 10.14])
    assert placed == [
        (0.0, 10.0, False),
        (0.04, 10.04, False),
        (0.1, 10.1, True),
        (0.14, 10.14, False),
    ]


def test_a_long_silence_is_no_jump_if_the_stamps_say_the_same() -> None:
    assert [p[2] for p in place([0.0, 0.04, 60.0], [10.0, 10.04, 70.0])] == [False, False, False]


def test_another_connection_begins_at_any_stamp_and_time_goes_on() -> None:
    clock = LiveClock()
    clock.place(900.0, 10.0)
    clock.reconnected()
    placed = clock.place(3.0, 14.0)
    assert (placed.time, placed.captured, placed.jumped) == (4.0, 14.0, False)


def test_a_slow_clock_of_the_sender_does_not_move_the_capture_times_away() -> None:
    # The sender's clock loses 100 ms in 1,000 s; a delay that only grew would end 100 ms before the arrival.
    clock = LiveClock()
    placed = [clock.place(second * 0.9999, 10.0 + second) for second in range(1001)]
    assert 10.0 + 1000 - placed[-1].captured < 0.01


def test_pauses_double_and_stay_within_their_bounds() -> None:
    backoff = Backoff(3.0)
    for least, most in [(0.5, 0.625), (1.0, 1.25), (2.0, 2.5), (3.0, 3.0), (3.0, 3.0)]:
        assert least <= backoff.pause() <= most
    backoff.ended(2.9)
    assert backoff.pause() == 3.0
    backoff.ended(3.0)
    assert backoff.pause() <= 0.625
