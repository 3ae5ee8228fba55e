"""Pictures that come in bursts are spread; expected values worked out by hand."""

import pytest

from foveate.pipeline.live.hls import Pacer


def test_a_burst_is_spread_a_little_faster_than_it_was_taken() -> None:
    pace = Pacer()
    # 0.11 s apart at 1.1 times the speed: 0.1 s after each other, all there at 10 s.
    assert [pace.pause(0.0, 10.0), pace.pause(0.11, 10.0), pace.pause(0.22, 10.1)] == pytest.approx([0.0, 0.1, 0.1])


def test_a_late_picture_is_not_held_back_and_the_next_follows_it() -> None:
    pace = Pacer()
    pace.pause(0.0, 10.0)
    assert pace.pause(0.11, 13.0) == 0.0
    assert pace.pause(0.22, 13.0) == pytest.approx(0.1)


@pytest.mark.parametrize("stamp", [None, 4.0, 3.0])
def test_without_a_step_ahead_nothing_is_held_back(stamp: float | None) -> None:
    pace = Pacer()
    pace.pause(4.0, 10.0)
    assert pace.pause(stamp, 10.0) == 0.0


def test_a_jump_holds_back_half_a_second_at_most() -> None:
    pace = Pacer()
    pace.pause(0.0, 10.0)
    assert pace.pause(5000.0, 10.0) == 0.5
