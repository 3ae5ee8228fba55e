"""Live sources whose sender is broken, or changes its mind."""

import time
from itertools import islice, pairwise
from typing import Any

import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import Settings
from foveate.pipeline.stream import Stream, open_stream


def opened(address: str, **overrides: Any) -> Stream:
    limits = {"connect_timeout": 3.0, "stall_timeout": 1.0, "policy": "every"}
    return open_stream(address, Settings(budget=60), live=limits, **overrides)


def test_garbage_instead_of_video(mjpeg: Any) -> None:
    begin = time.monotonic()
    with pytest.raises(SourceError, match="cannot be opened: invalid data") as caught:
        opened(f"http://127.0.0.1:{mjpeg.port}/garbage")
    assert "\n" not in str(caught.value)
    assert time.monotonic() - begin < 10.0


def test_parts_that_are_no_pictures_are_passed_over_and_counted(mjpeg: Any) -> None:
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?rate=100&spoil=5") as stream:
        got = list(islice(stream, 40))
        assert stream.status is not None
        assert stream.status.connections == 1
    assert [selection.index for selection in got] == list(range(40))
    assert 9 <= stream.damage.frames <= 14  # one behind every four, and those that came since


def test_noise_without_an_end_leads_to_another_connection(mjpeg: Any) -> None:
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?rate=100&flood=10") as stream:
        got = list(islice(stream, 15))
        assert stream.status is not None
        assert stream.status.connections == 2
    assert [selection.keyframe for selection in got].count("discontinuity") == 1


def test_another_size_begins_with_a_keyframe_and_keeps_the_query(mjpeg: Any) -> None:
    """Of the kinds of cases G6 and Q4: what was asked mid-stream is asked of the larger pictures as well."""
    address = f"http://127.0.0.1:{mjpeg.port}/stream?rate=50&grow=20"
    with opened(address, query=("red",)) as stream:
        got = []
        for selection in islice(stream, 30):
            got.append(selection)
            if selection.index == 5:
                stream.set_query(["grey"])
    sizes = [(selection.width, selection.height) for selection in got]
    assert sizes == [(320, 240)] * 20 + [(640, 360)] * 10
    assert got[20].keyframe == "size"
    relevant = [float(selection.participation.max()) for selection in got if selection.participation is not None]
    assert len(relevant) == 30
    assert max(relevant[:5]) < 0.1  # nothing is red
    assert min(relevant[20:]) > 0.9  # all is grey


def test_the_wall_clock_may_be_set_back(mjpeg: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shift, real = 0.0, time.time
    monkeypatch.setattr(time, "time", lambda: real() + shift)
    got = []
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?rate=50") as stream:
        for selection in islice(stream, 30):
            got.append(selection)
            if selection.index == 10:
                shift = -7200.0
    assert "discontinuity" not in {selection.keyframe for selection in got}
    assert all(before.time < after.time < before.time + 2 for before, after in pairwise(got))
    assert all(0 <= selection.extras["latency"] < 5 for selection in got)
