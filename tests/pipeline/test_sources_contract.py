"""One contract for every kind of source."""

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from foveate.pipeline.frames import Frame, Plane, Source
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source

KINDS = {  # name: number of frames, width, height
    "base.mp4": (60, 320, 240),
    "base.mkv": (60, 320, 240),
    "a.ts": (30, 320, 240),
    "T3_nopts.h264": (60, 320, 240),
    "T3_nopts.mjpeg": (60, 320, 240),
    "T4_reordered.avi": (60, 320, 240),
    "T8_one.mp4": (1, 320, 240),
    "G1_rot90.mp4": (30, 240, 320),
    "G3_321x241.mkv": (15, 321, 241),
    "G3_31x639.mkv": (15, 31, 639),
    "G3_17x1.mkv": (15, 17, 1),
    "G3_1x1.mkv": (15, 1, 1),
    "C2_yuv420p10le.mp4": (6, 64, 64),
    "C3_gray.mkv": (30, 320, 240),
    "C3_alpha.mov": (30, 320, 240),
    "C3_422.mp4": (30, 320, 240),
    "C3_444.mp4": (30, 320, 240),
    "C4_interlaced.mp4": (50, 720, 576),
    "I1.gif": (10, 64, 64),
    "I1_still.png": (1, 64, 64),
    "I2.jpg": (1, 64, 64),
    "I2.tiff": (1, 64, 64),
    "I2.webp": (1, 64, 64),
    "seq/f_%04d.png": (10, 64, 64),
}


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def source(cases: Path, name: str) -> Iterator[Source]:
    source = open_source(str(cases / name), SourceSettings())
    yield source
    source.close()


def planes(frame: Frame) -> list[Plane]:
    return [frame.luma, *(frame.chroma or ())]


def test_frames_have_the_right_number_order_and_size(source: Source, name: str) -> None:
    count, width, height = KINDS[name]
    frames = list(source)
    assert [frame.index for frame in frames] == list(range(count))
    assert {(frame.width, frame.height) for frame in frames} == {(width, height)}
    assert (source.info.width, source.info.height) == (width, height)
    seconds = [frame.time for frame in frames]
    assert seconds[0] == 0.0
    assert all(later > earlier for earlier, later in pairwise(seconds))
    assert not any(frame.discontinuity for frame in frames)
    assert source.damage.frames == 0
    assert source.damage.messages == []


def test_planes_are_bytes_of_the_right_shape_and_cannot_be_written(source: Source) -> None:
    frame = next(iter(source))
    height, width = frame.luma.shape
    allowed = {(height, width), ((height + 1) // 2, (width + 1) // 2)}
    assert all(plane.shape in allowed for plane in planes(frame)[1:])
    for plane in planes(frame):
        assert plane.dtype == np.uint8
        assert plane.strides[1] == 1
        with pytest.raises(ValueError, match="read-only"):
            plane[0, 0] = 1


def test_pixels_outlive_the_source(source: Source) -> None:
    frames = list(source)
    before = [plane.copy() for frame in frames for plane in planes(frame)]
    source.close()
    after = [plane for frame in frames for plane in planes(frame)]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_two_runs_give_the_same_pixels_and_times(source: Source, cases: Path, name: str) -> None:
    again = open_source(str(cases / name), SourceSettings())
    for one, other in zip(source, again, strict=True):
        assert one.time == other.time
        assert one.colour == other.colour
        assert all(np.array_equal(a, b) for a, b in zip(planes(one), planes(other), strict=True))
    again.close()


def test_closing_twice_half_way_and_before_reading(source: Source, cases: Path, name: str) -> None:
    next(iter(source))
    source.close()
    source.close()
    assert list(source) == []
    unread = open_source(str(cases / name), SourceSettings())
    unread.close()
    unread.close()


def test_the_frames_setting_stops_early(cases: Path, name: str) -> None:
    source = open_source(str(cases / name), SourceSettings(frames=3))
    assert len(list(source)) == min(3, KINDS[name][0])
    assert source.info.frames is None or source.info.frames <= 3
    source.close()


def test_opened_here_and_read_and_closed_in_another_thread(source: Source, name: str) -> None:
    count = []

    def read() -> None:
        count.append(sum(1 for _ in source))
        source.close()

    thread = threading.Thread(target=read)
    thread.start()
    thread.join(20)
    assert count == [KINDS[name][0]]


def test_luma_is_a_view_on_the_decoded_plane(cases: Path) -> None:
    source = open_source(str(cases / "base.mp4"), SourceSettings())
    frame = next(iter(source))
    assert not frame.luma.flags.owndata
    assert frame.luma.strides[0] >= frame.width
    source.close()
