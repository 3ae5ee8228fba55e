"""Frames of one's own: whatever holds their pixels, they are what the same pictures are as files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline import open_stream
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.own import OwnSource

Picture = NDArray[np.uint8]
FULL = Colour("bt601", True)


class Tensor:
    """Stands in for a tensor of another library: only DLPack, and cpu() where it lies on a GPU."""

    def __init__(self, values: NDArray[Any], on_gpu: bool = False) -> None:
        self._values, self._on_gpu = values, on_gpu
        self.shape, self.dtype = values.shape, values.dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0) if self._on_gpu else (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        assert not self._on_gpu, "read from the host"
        return self._values.__dlpack__(**options)

    def cpu(self) -> Tensor:
        return Tensor(self._values)


class Decoded(NamedTuple):
    """Stands in for torchcodec's Frame."""

    data: Tensor
    pts_seconds: float
    duration_seconds: float = 0.04


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    """Three colour pictures of an odd size, every colour there is among them, as R'G'B'."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (97, 123, 3), dtype=np.uint8) for _ in range(3)]


def read(given: Any, layout: Any = "rgb", rated: bool = False, **settings: Any) -> list[Frame]:
    source = OwnSource(given, SourceSettings(**settings), rated, layout)
    return list(source)


def planes(frames: list[Frame]) -> list[NDArray[np.uint8]]:
    return [plane for frame in frames for plane in (frame.luma, *(frame.chroma or ()))]


def same(first: list[Frame], second: list[Frame]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(planes(first), planes(second), strict=True))


def forms(picture: Picture) -> dict[str, tuple[Any, str]]:
    """The same picture, in each form that it may come in, and its layout."""
    pil = pytest.importorskip("PIL.Image")
    wide = np.zeros((200, 300, 3), np.uint8)
    wide[3:100, 7:130] = picture
    alpha = np.dstack([picture, np.full(picture.shape[:2], 9, np.uint8)])
    chw = np.ascontiguousarray(np.moveaxis(picture, 2, 0))
    locked = picture.copy()
    locked.setflags(write=False)
    return {
        "HWC": (picture.copy(), "rgb"),
        "BGR": (np.ascontiguousarray(picture[..., ::-1]), "bgr"),
        "BGR by a negative stride": (picture[..., ::-1], "bgr"),
        "upside down by a negative stride": (np.ascontiguousarray(picture[::-1])[::-1], "rgb"),
        "part of a larger one": (wide[3:100, 7:130], "rgb"),
        "RGBA": (alpha, "rgb"),
        "CHW": (chw, "rgb"),
        "CHW in BGR": (np.ascontiguousarray(chw[::-1]), "bgr"),
        "RGBA, CHW": (np.ascontiguousarray(np.moveaxis(alpha, 2, 0)), "rgb"),
        "read-only": (locked, "rgb"),
        "tensor": (Tensor(chw), "rgb"),
        "tensor, HWC": (Tensor(picture.copy()), "rgb"),
        "tensor on a GPU": (Tensor(chw, on_gpu=True), "rgb"),
        "torchcodec": (Decoded(Tensor(chw), 0.0), "rgb"),
        "PIL": (pil.fromarray(picture), "rgb"),
        "PIL, told to be BGR": (pil.fromarray(picture), "bgr"),
        "PIL, RGBA": (pil.fromarray(alpha), "rgb"),
        "PyAV": (av.VideoFrame.from_ndarray(picture, format="rgb24"), "rgb"),
        "PyAV, BGR": (av.VideoFrame.from_ndarray(np.ascontiguousarray(picture[..., ::-1]), format="bgr24"), "rgb"),
    }


@pytest.mark.parametrize("form", forms(np.zeros((97, 123, 3), np.uint8)))
def test_every_form_of_a_picture_is_what_its_png_file_is(form: str, pictures: list[Picture], tmp_path: Path) -> None:
    for number, picture in enumerate(pictures):
        cv2.imwrite(str(tmp_path / f"{number}.png"), picture[..., ::-1])
    files = open_source(str(tmp_path / "%d.png"), SourceSettings())
    expected = list(files)
    files.close()
    given = [forms(picture)[form] for picture in pictures]
    frames = read([picture for picture, _ in given], given[0][1])
    assert same(frames, expected)
    assert [frame.colour for frame in frames] == [FULL] * 3
    assert not any(plane.flags.writeable for plane in planes(frames))


def test_colours_are_off_by_at_most_one_level(pictures: list[Picture]) -> None:
    (frame,) = read(pictures[:1])
    red, green, blue = np.moveaxis(pictures[0].astype(float), 2, 0)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    assert frame.chroma is not None
    for plane, exact in zip(
        (frame.luma, *frame.chroma), (luma, 128 + (blue - luma) / 1.772, 128 + (red - luma) / 1.402), strict=True
    ):
        assert np.abs(plane - np.clip(exact, 0, 255)).max() <= 1


@pytest.mark.parametrize("grey", [np.uint8([[1, 2, 3, 4, 5], [4, 5, 6, 7, 8]])])
def test_grey_pictures_keep_their_values(grey: Picture) -> None:
    pil = pytest.importorskip("PIL.Image")
    for given in (grey, grey[..., None], grey[None], Tensor(grey), pil.fromarray(grey)):
        (frame,) = read([given])
        assert frame.luma.tolist() == [[1, 2, 3, 4, 5], [4, 5, 6, 7, 8]]
        assert frame.chroma is None
        assert frame.colour == FULL


@pytest.mark.parametrize("name", ["G1_rot90.mp4", "C3_444.mp4", "C3_gray.mkv", "C2_yuv420p10le.mp4"])
def test_decoded_frames_keep_planes_tags_times_and_orientation(name: str, cases: Path) -> None:
    source = open_source(str(cases / name), SourceSettings(frames=8))
    expected = list(source)
    source.close()
    with av.open(str(cases / name)) as container:
        frames = read(container.decode(video=0), frames=8)
    assert same(frames, expected)
    assert [frame.colour for frame in frames] == [frame.colour for frame in expected]
    assert [frame.time for frame in frames] == pytest.approx([frame.time for frame in expected])


def test_frames_of_a_stream_may_be_given_to_another(samples: Path) -> None:
    with open_stream(samples / "tree.mp4", engine="cpu", source={"frames": 4}) as stream:
        expected = list(stream)
    with open_stream(samples / "tree.mp4", engine="cpu", source={"frames": 4}) as stream:
        frames = [stream.frame for _ in stream]
    with open_stream(frames, engine="cpu") as stream:
        found = list(stream)
    assert [tokens(each) for each in found] == [tokens(each) for each in expected]
    assert [each.time for each in found] == [each.time for each in expected]


class OnDevice:
    """Stands in for a stream's frame whose pixels lie on a GPU."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self.copied = frame, False
        self.time, self.colour = frame.time, frame.colour

    @property
    def luma(self) -> Any:
        self.copied = True
        return self._frame.luma

    @property
    def chroma(self) -> Any:
        return self._frame.chroma

    def rgb(self) -> Any:
        return self._frame.rgb()


def test_so_may_those_that_lie_on_a_gpu(pictures: list[Picture]) -> None:
    expected = read(pictures, rate=4)
    given = [OnDevice(frame) for frame in expected]
    frames = read(given)
    assert same(frames, expected)
    assert [frame.time for frame in frames] == [0.0, 0.25, 0.5]
    lone = OnDevice(expected[0])
    with pytest.raises(SettingsError, match=r"^source is one picture"):
        open_stream(lone, engine="cpu")
    assert not lone.copied


def tokens(selection: Selection) -> list[tuple[int, int, int]]:
    return list(zip(selection.x.tolist(), selection.y.tolist(), selection.lod.tolist(), strict=True))


def test_one_array_may_be_used_for_all_frames(pictures: list[Picture]) -> None:
    held = np.empty_like(pictures[0])

    def reused() -> Iterator[Picture]:
        for picture in pictures:
            held[:] = picture
            yield held
        held[:] = 0

    with open_stream(reused(), engine="cpu") as stream:
        found = list(stream)
    with open_stream([picture.copy() for picture in pictures], engine="cpu") as stream:
        expected = list(stream)
    assert [tokens(each) for each in found] == [tokens(each) for each in expected]
    frame = av.VideoFrame.from_numpy_buffer(held, format="rgb24")
    made = read([frame])
    before = [plane.copy() for plane in planes(made)]
    held[:] = 77
    assert all(np.array_equal(a, b) for a, b in zip(planes(made), before, strict=True))


def test_arrays_are_never_written_to(pictures: list[Picture]) -> None:
    before = [picture.copy() for picture in pictures]
    with open_stream(pictures, engine="cpu", layout="bgr") as stream:
        list(stream)
    assert all(np.array_equal(a, b) for a, b in zip(pictures, before, strict=True))
    assert all(picture.flags.writeable for picture in pictures)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (np.zeros((4, 5, 3), np.float32), r"float32\[4, 5, 3\], layout rgb: pixels must be uint8"),
        (np.zeros((4, 5, 3), np.uint16), r"uint16\[4, 5, 3\], layout rgb: pixels must be uint8"),
        (np.zeros((6, 5, 2), np.uint8), r"uint8\[6, 5, 2\], layout rgb: a picture is uint8 \[H, W\], "),
        (np.zeros((5, 4, 9), np.uint8), r"uint8\[5, 4, 9\], layout rgb: a picture is"),
        (np.zeros((0, 5, 3), np.uint8), r"uint8\[0, 5, 3\], layout rgb: there are no pixels"),
        (np.zeros((2, 4, 5, 3), np.uint8), r"uint8\[2, 4, 5, 3\], layout rgb: a picture is .* give one at a time"),
        (np.zeros(7, np.uint8), r"uint8\[7\], layout rgb: a picture is"),
        (Tensor(np.zeros((3, 4, 5), np.float32)), r"float32\[3, 4, 5\], layout rgb: pixels must be uint8"),
        ([[1, 2], [3, 4]], "list: a picture is an array or tensor"),
        (None, "NoneType: a picture is an array or tensor"),
        ("a.png", "str: a picture is an array or tensor"),
    ],
)
def test_what_is_no_picture_is_told_in_one_line(wrong: Any, told: str, pictures: list[Picture]) -> None:
    with pytest.raises(SourceError, match=f"^frame 2: {told}") as error:
        read([*pictures[:2], wrong])
    assert "\n" not in str(error.value)


def test_images_of_more_than_8_bits_are_refused() -> None:
    pil = pytest.importorskip("PIL.Image")
    for mode in ("F", "I", "I;16"):
        with pytest.raises(SourceError, match=f"^frame 0: PIL image of mode {mode}, 4x3: pixels must be of 8 bits"):
            read([pil.new(mode, (4, 3))])
    (palette,) = read([pil.new("RGB", (4, 3), (10, 200, 30)).quantize(4)])
    assert np.abs(palette.rgb().astype(int) - (10, 200, 30)).max() <= 2


def test_a_tensor_on_a_gpu_without_a_way_to_the_host_is_told() -> None:
    lone = Tensor(np.zeros((3, 4, 5), np.uint8), on_gpu=True)
    lone.cpu = None  # type: ignore[method-assign, assignment]
    with pytest.raises(SourceError, match=r"^frame 0: uint8\[3, 4, 5\] lies on a GPU, and has no cpu\(\)"):
        read([lone])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (np.zeros((480, 640, 3), np.uint8), r"source is one picture, uint8\[480, 640, 3\]; give several"),
        (3.5, "source must be a path, .* or an iterable of frames, got 3.5"),
        (True, "source must be a path, .* or an iterable of frames, got True"),
    ],
)
def test_what_is_no_source_is_told(wrong: Any, told: str) -> None:
    with pytest.raises(SettingsError, match=f"^{told}"):
        open_stream(wrong, engine="cpu")


def test_an_empty_iterable_is_told() -> None:
    with pytest.raises(SourceError, match=r"^<frames>: no frame came; the list is empty$"):
        open_stream([], engine="cpu")


def test_all_pictures_of_one_array_are_its_frames(pictures: list[Picture]) -> None:
    assert same(read(np.stack(pictures)), read(pictures))
    assert same(read(np.moveaxis(np.stack(pictures), 3, 1)), read(pictures))


def test_a_change_of_size_is_a_keyframe(pictures: list[Picture]) -> None:
    other = np.zeros((40, 60, 3), np.uint8)
    with open_stream([pictures[0], pictures[0], other, other], engine="cpu") as stream:
        found = list(stream)
    assert [each.keyframe for each in found] == ["first", None, "size", None]
    assert [(each.width, each.height) for each in found] == [(123, 97)] * 2 + [(60, 40)] * 2


def test_times_follow_from_the_rate(pictures: list[Picture]) -> None:
    with open_stream(pictures, fps=10, engine="cpu") as stream:
        assert stream.info.fps == 10
        assert stream.info.frames == 3
        assert not stream.info.notes
        assert [each.time for each in stream] == [0.0, 0.1, 0.2]
    with open_stream(iter(pictures), engine="cpu", source={"rate": 5}) as stream:
        assert stream.info.frames is None
        assert stream.info.notes == ("times made up from the rate setting, 5 frames per second",)
        assert [each.time for each in stream] == [0.0, 0.2, 0.4]


def test_times_may_come_with_the_frames(pictures: list[Picture]) -> None:
    pairs = list(zip((100.5, 101, np.float32(163.5)), pictures, strict=True))
    with open_stream(pairs, engine="cpu", fps=1) as stream:
        assert stream.header.start == 100.5
        found = list(stream)
    assert [each.time for each in found] == [0.0, 0.5, 63.0]
    assert [each.keyframe for each in found][1:] != ["discontinuity"] * 2


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ((1.0, 2.0, 2.0), "frame 2: its time must be greater than that of the one before, 2 s, got 2 s"),
        ((1.0, float("nan"), 2.0), "frame 1: its time must be a number of seconds, got nan"),
        (("0", "1", "2"), "frame 0: its time must be a number of seconds, got '0'"),
    ],
)
def test_wrong_times_are_told(times: tuple[Any, ...], told: str, pictures: list[Picture]) -> None:
    with pytest.raises(SourceError, match=f"^{told}$"):
        read(zip(times, pictures, strict=True))


def test_times_that_frames_bear_count_unless_a_rate_is_given(pictures: list[Picture]) -> None:
    borne = [
        Decoded(Tensor(picture), time) for picture, time in zip(pictures * 2, (3, 3.5, 4.5, 1, 1.5, 9), strict=True)
    ]
    frames = read(borne, rate=4)
    assert [frame.time for frame in frames] == [0, 0.5, 1.5, 1.75, 2.25, 9.75]
    assert [frame.discontinuity for frame in frames] == [False, False, False, True, False, False]
    assert [frame.time for frame in read(borne, rated=True, rate=4)] == [0, 0.25, 0.5, 0.75, 1.0, 1.25]


def test_only_so_many_frames_are_taken(pictures: list[Picture]) -> None:
    with open_stream(pictures, engine="cpu", source={"frames": 2}) as stream:
        assert stream.info.frames == 2
        assert len(list(stream)) == 2


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        ({"every": 3}, [0, 3, 6, 9]),
        ({"fps": 5}, [0, 2, 4, 6, 8]),
        ({"start": 0.35, "end": 0.7}, [3, 4, 5, 6]),
        ({"start": "0:00.5", "fps": 2, "frames": 1}, [5]),
    ],
)
def test_frames_are_looked_at_as_those_of_a_file(sampling: dict[str, Any], expected: list[int]) -> None:
    held = np.empty((40, 60), np.uint8)

    def reused() -> Iterator[Picture]:
        for number in range(10):
            held[:] = number
            yield held

    with open_stream(reused(), fps=10, engine="cpu", source=sampling) as stream:
        seen = [(each.index, each.time, int(stream.frame.luma[0, 0])) for each in stream if stream.frame]
    assert seen == [(number, number / 10, number) for number in expected]


def test_a_span_behind_the_end_is_told(pictures: list[Picture]) -> None:
    with pytest.raises(SourceError, match=r"^<frames>: there is no frame at 9 s or later; "):
        open_stream(pictures, engine="cpu", source={"start": 9})


def test_a_generator_is_not_run_far_ahead_and_left_when_the_stream_is(pictures: list[Picture]) -> None:
    taken = [0]

    def endless() -> Iterator[Picture]:
        while True:
            taken[0] += 1
            yield pictures[taken[0] % 3]

    with open_stream(endless(), engine="cpu") as stream:
        for number, _ in enumerate(stream):
            assert taken[0] <= number + 12
            if number == 20:
                break
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("foveate")]


def test_what_the_iterable_raises_is_raised(pictures: list[Picture]) -> None:
    def failing() -> Iterator[Picture]:
        yield from pictures
        raise OSError("the camera is gone")

    with open_stream(failing(), engine="cpu") as stream, pytest.raises(OSError, match="the camera is gone") as error:
        list(stream)
    assert error.value.__notes__ == ["in stage decode"]


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"fps": 2}, "^fps is for frames of your own, and the source is a file or an address, got 2; "),
        ({"layout": "bgr"}, "^layout is for arrays of your own, and the source is a file or an address, got 'bgr'$"),
    ],
)
def test_a_file_is_told_neither_rate_nor_layout(keywords: dict[str, Any], told: str, samples: Path) -> None:
    with pytest.raises(SettingsError, match=told):
        open_stream(samples / "tree.mp4", engine="cpu", **keywords)


def test_another_layout_or_rate_is_told(pictures: list[Picture]) -> None:
    with pytest.raises(SettingsError, match=r"^layout must be 'rgb' or 'bgr', got 'chw'$"):
        open_stream(pictures, engine="cpu", layout="chw")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"^source\.rate must be greater .* got 0$"):
        open_stream(pictures, engine="cpu", fps=0)


def test_a_number_is_a_camera(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "9").touch()  # a file of that name is meant by the text "9" only
    with pytest.raises(SourceError, match="there is no camera at /dev/video9"):
        open_stream(9, engine="cpu")
