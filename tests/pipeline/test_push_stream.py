"""Frames pushed one by one: one Selection for each, at once, and nothing left behind."""

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from foveate.pipeline import open_push_stream, open_stream
from foveate.pipeline.errors import SettingsError, SinkError, SourceError
from foveate.pipeline.sinks import open_sink


@pytest.fixture(scope="module")
def pictures(samples: Path) -> list[NDArray[np.uint8]]:
    """The first frames of a clip, as R'G'B'."""
    with open_stream(samples / "pedestrians.mp4", engine="cpu", source={"frames": 12}) as stream:
        return [stream.frame.rgb() for _ in stream if stream.frame is not None]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("foveate")] == []


@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_each_frame_is_answered_with_its_own_selection(memory: Any, pictures: list[NDArray[np.uint8]]) -> None:
    settings: Any = {"engine": "cpu", "allocation": {"memory": memory}, "patches": True, "fps": 10}
    with open_stream(pictures, **settings) as stream:
        expected = list(stream)
    held = np.empty_like(pictures[0])
    with open_push_stream(**settings) as pushed:
        assert pushed.frame is None
        assert pushed.info is None
        for number, picture in enumerate(pictures):
            held[:] = picture  # as a camera's buffer
            selection = pushed.push(held)
            held[:] = 0
            assert selection.index == number
            assert selection.time == pytest.approx(number / 10)
            assert pushed.frame is not None
            assert pushed.frame.index == number
            for name in ("x", "y", "lod", "score", "patches"):
                assert (getattr(selection, name) == getattr(expected[number], name)).all()
        assert pushed.info is not None
        assert (pushed.info.width, pushed.info.height, pushed.info.fps) == (768, 576, 10)


def test_what_is_set_counts_from_the_very_next_frame(pictures: list[NDArray[np.uint8]]) -> None:
    with open_push_stream(engine="cpu", query=["red"]) as stream:
        assert len(stream.push(pictures[0])) > 200
        stream.set_budget(20)
        selection = stream.push(pictures[1])
        assert len(selection) <= 20
        stream.add_attention(selection.index, np.ones(len(selection), np.float32))
        assert stream.set_query(["blue"]) == ()
        assert stream.push(pictures[2]).extras["query"] == ("blue",)


def test_a_wrong_frame_counts_as_never_given(pictures: list[NDArray[np.uint8]]) -> None:
    with open_push_stream(engine="cpu") as stream:
        with pytest.raises(SourceError, match=r"^frame 0: float64\[576, 768, 3\], layout rgb: pixels must be uint8"):
            stream.push(pictures[0] / 255)
        assert stream.push(pictures[0], time=7.0).index == 0
        with pytest.raises(SourceError, match=r"^frame 1: its time must be greater .*, 7 s, got 6\.5 s$"):
            stream.push(pictures[1], time=6.5)
        selection = stream.push(pictures[1], time=7.5)
        assert (selection.index, selection.time) == (1, 0.5)
        assert stream.push(pictures[2]).time == pytest.approx(0.54)  # the rate setting is 25


def test_a_change_of_size_is_a_keyframe(pictures: list[NDArray[np.uint8]]) -> None:
    with open_push_stream(engine="cpu") as stream:
        stream.push(pictures[0])
        assert stream.push(pictures[0][:100]).keyframe == "size"


def test_outputs_hold_every_frame_that_was_answered(pictures: list[NDArray[np.uint8]], tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    with open_push_stream(engine="cpu", sinks=[open_sink(str(file))]) as stream:
        for picture in pictures[:5]:
            stream.push(picture)
    header, *records = map(orjson.loads, file.read_bytes().splitlines())
    assert (header["source"], header["width"], header["height"]) == ("<pushed frames>", 768, 576)
    assert [record["index"] for record in records] == [0, 1, 2, 3, 4]


class Full:
    """A sink that fails at the third frame."""

    needs_patches = needs_heat = needs_query = False

    def open(self, header: Any) -> None:
        """Nothing to open."""

    def write(self, frame: Any, selection: Any) -> None:
        if selection.index == 2:
            raise SinkError("the disk is full")

    def close(self) -> None:
        """Nothing to close."""


def test_an_error_of_a_stage_closes_the_stream(pictures: list[NDArray[np.uint8]]) -> None:
    with open_push_stream(engine="cpu", sinks=[Full()]) as stream:
        stream.push(pictures[0])
        stream.push(pictures[1])
        with pytest.raises(SinkError, match="the disk is full"):
            stream.push(pictures[2])
        with pytest.raises(ValueError, match=r"^the stream is closed, and takes no more frames$"):
            stream.push(pictures[3])


def test_a_closed_stream_takes_no_more(pictures: list[NDArray[np.uint8]]) -> None:
    unused = open_push_stream(engine="cpu")
    unused.close()
    stream = open_push_stream(engine="cpu")
    stream.push(pictures[0])
    stream.close()
    stream.close()
    for closed in (unused, stream):
        with pytest.raises(ValueError, match=r"^the stream is closed, and takes no more frames$"):
            closed.push(pictures[1])


def test_it_may_be_closed_by_another_thread_meanwhile(pictures: list[NDArray[np.uint8]]) -> None:
    class Slow(Full):
        def write(self, frame: Any, selection: Any) -> None:
            begun.set()
            go_on.wait(5)

    begun, go_on = threading.Event(), threading.Event()
    stream = open_push_stream(engine="cpu", sinks=[Slow()])

    def close() -> None:
        begun.wait(5)
        threading.Timer(0.2, go_on.set).start()
        stream.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(ValueError, match=r"^the stream was closed while a frame was pushed$"):
        stream.push(pictures[0])
    closer.join(10)
    assert not closer.is_alive()


def test_several_threads_take_turns(pictures: list[NDArray[np.uint8]]) -> None:
    seen: list[int] = []

    def push() -> None:
        seen.extend(stream.push(picture).index for picture in pictures[:4])

    with open_push_stream(engine="cpu") as stream:
        threads = [threading.Thread(target=push) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(seen) == list(range(12))


@pytest.mark.parametrize("setting", [{"frames": 3}, {"stream": 1}])
def test_settings_that_choose_frames_are_refused(setting: Any) -> None:
    with pytest.raises(SettingsError, match=rf"^source\.{next(iter(setting))} chooses among the frames"):
        open_push_stream(source=setting)


def test_a_file_object_is_no_frame() -> None:
    with open_push_stream(engine="cpu") as stream, pytest.raises(SourceError, match=r"^frame 0: BytesIO: a picture is"):
        stream.push(io.BytesIO(b"abc"))
