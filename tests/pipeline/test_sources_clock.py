"""Presentation times from sane, missing, stray and jumping timestamps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.pipeline.sources.clock import Stamped, timed

STAMPS = st.lists(st.none() | st.floats(-1e5, 1e5), min_size=1, max_size=40)


def run(*stamps: float | None, duration: float | None = None, spliced: bool = True) -> tuple[list[float], list[int]]:
    """Times rounded to a microsecond, and the positions of discontinuities; nominal duration 0.1 s."""
    placed = list(timed([Stamped(i, stamp, duration) for i, stamp in enumerate(stamps)], 0.1, spliced))
    assert [entry.item for entry in placed] == list(range(len(stamps)))
    return [round(entry.time, 6) for entry in placed], [entry.item for entry in placed if entry.jumped]


def test_sane_timestamps_are_kept_gaps_included() -> None:
    assert run(0.0, 0.1, 0.7, 1.1, 9.0) == ([0.0, 0.1, 0.7, 1.1, 9.0], [])


def test_no_timestamps_at_all() -> None:
    assert run(None, None, None, None) == ([0.0, 0.1, 0.2, 0.3], [])


def test_frame_durations_count_where_timestamps_are_missing() -> None:
    assert run(None, None, None, duration=0.04) == ([0.0, 0.04, 0.08], [])


def test_a_single_missing_timestamp_lies_between_its_neighbours() -> None:
    assert run(0.0, 0.1, None, 0.5, 0.6) == ([0.0, 0.1, 0.3, 0.5, 0.6], [])


def test_a_missing_first_timestamp() -> None:
    assert run(None, 5.0, 5.1) == ([0.0, 0.1, 0.2], [])


def test_a_repeated_timestamp_is_nudged_and_the_next_is_true() -> None:
    assert run(0.0, 0.1, 0.1, 0.2) == ([0.0, 0.1, 0.125, 0.2], [])


def test_many_repeated_timestamps_do_not_run_ahead_of_the_next_true_one() -> None:
    """As of 10,000 pictures a second where the container counts milliseconds."""
    times, jumps = run(*[0.0] * 60, *[0.1] * 60, 0.2)
    assert jumps == []
    assert times[:3] == [0.0, 0.025, 0.0375]
    assert times[59] < 0.1 == times[60]
    assert times[-1] == 0.2


def test_neighbours_in_disorder_are_no_discontinuity() -> None:
    assert run(0.0, 0.2, 0.1, 0.3) == ([0.0, 0.2, 0.225, 0.3], [])


@pytest.mark.parametrize("spliced", [False, True])
@pytest.mark.parametrize("stray", [50.0, -50.0])
def test_a_lone_stray_timestamp_leaves_no_trace(stray: float, spliced: bool) -> None:
    assert run(0.0, 0.1, stray, 0.3, 0.4, spliced=spliced) == ([0.0, 0.1, 0.2, 0.3, 0.4], [])


def test_a_jump_forward_is_kept_and_marked() -> None:
    assert run(0.0, 0.1, 100.0, 100.1) == ([0.0, 0.1, 100.0, 100.1], [2])


def test_a_gap_is_no_jump_where_all_times_lie_on_one_line() -> None:
    """Slides, and recordings of a still screen, hold a picture for as long as nothing changes."""
    slides = (0.0, 0.1, 12.0, 24.0, 3600.0, 3600.1, 3612.0)
    assert run(*slides, spliced=False) == (list(slides), [])


@pytest.mark.parametrize("spliced", [False, True])
def test_a_jump_back_goes_on_from_the_last_time_and_is_marked(spliced: bool) -> None:
    assert run(60.0 - 60, 0.1, 0.2, -5.0, -4.9, spliced=spliced) == ([0.0, 0.1, 0.2, 0.3, 0.4], [3])


def test_a_jump_at_the_very_end() -> None:
    assert run(0.0, 0.1, 100.0) == ([0.0, 0.1, 100.0], [2])


def test_a_long_frame_that_says_so_is_no_jump() -> None:
    assert run(0.0, 60.0, 120.0, duration=60.0) == ([0.0, 60.0, 120.0], [])


@given(STAMPS, st.booleans())
def test_times_increase_strictly_whatever_the_timestamps(stamps: list[float | None], spliced: bool) -> None:
    placed = list(timed([Stamped(i, stamp, None) for i, stamp in enumerate(stamps)], 0.04, spliced))
    assert [entry.item for entry in placed] == list(range(len(stamps)))
    assert placed[0].time == 0.0
    assert all(b.time > a.time for a, b in pairwise(placed))
