"""Which pictures of a live source are looked at."""

import pytest

from foveate.app.main import main
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.live.sampling import LiveSampling
from foveate.pipeline.settings import SourceSettings


def taken(sampling: LiveSampling, pictures: list[tuple[int, float]]) -> list[int]:
    return [number for number, seconds in pictures if sampling.take(number, seconds)]


def test_all_where_nothing_is_asked() -> None:
    assert taken(LiveSampling(SourceSettings()), [(0, 0.0), (1, 0.04), (7, 0.28)]) == [0, 1, 7]


def test_the_first_picture_of_every_moment() -> None:
    """Two a second of 25: numbers 13 and 38 are the first at or behind 0.5 s and 1.5 s."""
    pictures = [(number, number / 25) for number in range(60)]
    assert taken(LiveSampling(SourceSettings(fps=2)), pictures) == [0, 13, 25, 38, 50]


def test_times_that_are_rounded_to_milliseconds() -> None:
    pictures = [(number, round(number / 30, 3)) for number in range(90)]
    assert taken(LiveSampling(SourceSettings(fps=30)), pictures) == list(range(90))


def test_what_was_missed_is_not_made_up_for() -> None:
    pictures = [(0, 0.0), (1, 0.1), (2, 5.05), (3, 5.15), (4, 6.05)]
    assert taken(LiveSampling(SourceSettings(fps=1)), pictures) == [0, 2, 4]


def test_every_nth_where_pictures_were_dropped() -> None:
    numbers = [0, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16]
    pictures = [(number, number / 25) for number in numbers]
    assert taken(LiveSampling(SourceSettings(every=4)), pictures) == [0, 4, 11, 12, 16]


@pytest.mark.parametrize("asked", [{"start": 1.0}, {"end": 5.0}])
def test_a_part_of_a_live_source_is_refused(asked: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="are for files; a live source is read from now on"):
        LiveSampling(SourceSettings(**asked))


def test_the_command_refuses_it_before_it_connects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live", "rtsp://127.0.0.1:1/none", "--start", "5"]) == 2
    assert "are for files" in capsys.readouterr().err
