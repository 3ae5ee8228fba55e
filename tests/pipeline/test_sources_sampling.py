"""Sampling: what is looked at is what PyAV shows at those times, to the bit, with its number and time."""

import itertools
import os
import subprocess
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline import open_stream
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.frames import Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.decoding import FrameDecoder

FRAMES, RATE = 96, 24
WIDTH, HEIGHT = 128, 64
ROUNDED = Fraction(1, 1000)  # seconds, by which Matroska rounds

Picture = tuple[Fraction, NDArray[np.uint8]]  # seconds after the first, luma

FILES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {  # codec, its options, the container's
    "long.mp4": ("libx264", {"x264-params": "keyint=250:bframes=3:b-adapt=0:scenecut=0"}, {}),
    "short.mp4": ("libx264", {"x264-params": "keyint=12:bframes=2:b-adapt=0:scenecut=0"}, {}),
    "open.mp4": ("libx264", {"x264-params": "keyint=15:bframes=3:b-adapt=0:scenecut=0:open-gop=1"}, {}),
    "pyramid.mkv": ("libx264", {"x264-params": "keyint=30:bframes=6:b-adapt=0:scenecut=0:ref=5"}, {}),
    "a.ts": ("libx264", {"x264-params": "keyint=25:bframes=3:b-adapt=0:scenecut=0"}, {}),
    "plain.ts": ("libx264", {"x264-params": "keyint=20:bframes=0:scenecut=0"}, {}),
    "fragments.mp4": (
        "libx264",
        {"x264-params": "keyint=16:bframes=2:b-adapt=0:scenecut=0"},
        {"movflags": "frag_keyframe+empty_moov"},
    ),
    "intra.mov": ("libx264", {"g": "1"}, {}),
    "open_hevc.mp4": ("libx265", {"x265-params": "keyint=20:log-level=none"}, {}),
    "layers.mkv": ("libx265", {"x265-params": "keyint=20:temporal-layers=3:log-level=none"}, {}),
    "mpeg2.ts": ("mpeg2video", {"g": "12", "bf": "2"}, {}),
    "mpeg4.mp4": ("mpeg4", {"g": "12", "bf": "2"}, {}),
    "vp9.webm": ("libvpx-vp9", {"g": "20", "deadline": "realtime", "cpu-used": "8"}, {}),
    "vp8.webm": ("libvpx", {"g": "20"}, {}),
    "jpeg.mov": ("mjpeg", {}, {}),
    "raw.h264": ("libx264", {"x264-params": "keyint=12:bframes=2:b-adapt=0:scenecut=0"}, {}),
}
ASKED: dict[str, dict[str, Any]] = {
    "one a second": {"fps": 1},
    "more than there are": {"fps": 1000},
    "just as many": {"fps": RATE},
    "one in three seconds": {"fps": 1 / 3},
    "every seventh": {"every": 7},
    "from somewhere": {"start": 1.23},
    "a second": {"start": 0.5, "end": 1.5},
    "some of a second": {"start": 1.0, "end": 1.9, "fps": 4},
    "every fourth of the rest": {"start": "0:02.02", "every": 4},
    "the last second": {"start": -1.0},
}


def coded(number: int) -> NDArray[np.uint8]:
    """A picture that bears its number in its columns, with noise that differs from picture to picture."""
    bits = (number >> np.arange(8)) & 1
    noise = np.random.default_rng(number).integers(0, 16, (HEIGHT, WIDTH))
    return np.asarray(np.repeat(40 + 160 * bits, WIDTH // 8)[None, :] + noise, np.uint8)


def number_in(luma: NDArray[np.uint8]) -> int:
    bits = luma.reshape(HEIGHT, 8, -1).mean(axis=(0, 2)) > 120
    return int(bits @ (1 << np.arange(8)))


def encode(
    path: Path, codec: str, options: dict[str, str], container: dict[str, str], gap: int = 0, rate: int = RATE
) -> None:
    """``FRAMES`` pictures; with a ``gap`` so many are left out from the 30th on, and the 29th stands for them."""
    with av.open(str(path), "w", options=container) as out:
        stream = out.add_stream(codec, rate=rate, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = WIDTH, HEIGHT
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for number in range(FRAMES):
            if 30 <= number < 30 + gap:
                continue
            frame = av.VideoFrame.from_ndarray(coded(number), format="gray").reformat(format=stream.pix_fmt)
            frame.pts, frame.time_base = number, Fraction(1, rate)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


def by_pyav(path: Path) -> list[Picture]:
    """Every picture, decoded one after the other."""
    found = []
    with av.open(str(path)) as container:
        for number, frame in enumerate(container.decode(video=0)):
            plane = frame.planes[0]
            luma = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)[:HEIGHT, :WIDTH].copy()
            seconds = Fraction(number, RATE) if frame.pts is None else frame.pts * Fraction(frame.time_base)
            found.append((seconds, luma))
    return [(seconds - found[0][0], luma) for seconds, luma in found]


def expected(times: list[Fraction], asked: dict[str, Any]) -> list[int]:
    """The numbers of the pictures that are to be looked at, by the definition in docs/command-line.md."""
    ends = [*times[1:], times[-1] + Fraction(1, RATE)]
    start = {"0:02.02": Fraction("2.02"), -1.0: ends[-1] - 1}.get(asked.get("start", 0)) or asked.get("start", 0)
    end = min(Fraction(asked.get("end", ends[-1])), ends[-1])
    if "fps" not in asked:
        shown = [
            n
            for n, (begin, until) in enumerate(zip(times, ends, strict=True))
            if begin < end and until > start + ROUNDED
        ]
        return shown[:: asked.get("every", 1)]
    fps = Fraction(asked["fps"]).limit_denominator(1000)
    moments = itertools.takewhile(lambda t: t < end, (start + k / fps for k in itertools.count()))
    at = [max(n for n, begin in enumerate(times) if begin <= moment + ROUNDED) for moment in moments]
    return [number for number, _ in itertools.groupby(at)]


def read(path: Path | str, **asked: Any) -> list[Frame]:
    source = open_source(str(path), SourceSettings(**asked))
    frames = list(source)
    source.close()
    assert source.damage.frames == 0
    assert source.damage.messages == []
    return frames


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, list[Picture]]]:
    """Makes each file of FILES once, and decodes it once."""
    folder, made = tmp_path_factory.mktemp("sampling"), dict[str, tuple[Path, list[Picture]]]()

    def make(name: str) -> tuple[Path, list[Picture]]:
        codec, options, container = FILES[name]
        if codec not in av.codecs_available:
            pytest.skip(f"this PyAV has no encoder {codec}")
        if name not in made:
            encode(folder / name, codec, options, container)
            made[name] = folder / name, by_pyav(folder / name)
        return made[name]

    return make


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the packets that decoders were given."""
    sizes: list[int] = []
    decode = FrameDecoder.decode

    def counted(self: FrameDecoder, packet: Any) -> Any:
        sizes.append(packet.size)
        return decode(self, packet)

    monkeypatch.setattr(FrameDecoder, "decode", counted)
    return sizes


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("name", FILES)
def test_what_is_looked_at_is_what_a_full_decode_shows(
    name: str, asked: dict[str, Any], file: Callable[[str], tuple[Path, list[Picture]]]
) -> None:
    path, pictures = file(name)
    if asked.get("start") == -1.0 and name in ("raw.h264", "fragments.mp4"):
        pytest.skip("its header tells no length")
    frames = read(path, **asked)
    wanted = expected([seconds for seconds, _ in pictures], asked)
    assert [frame.index for frame in frames] == wanted
    assert [number_in(frame.luma) for frame in frames] == wanted
    for frame in frames:
        seconds, luma = pictures[frame.index]
        assert frame.time == pytest.approx(float(seconds), abs=1e-9)
        assert np.array_equal(frame.luma, luma)


@pytest.mark.parametrize(
    ("name", "most"),
    [("short.mp4", 16), ("a.ts", 40), ("pyramid.mkv", 26), ("open_hevc.mp4", 20), ("intra.mov", 8), ("mpeg2.ts", 16)],
)
def test_what_is_not_looked_at_is_not_decoded(
    name: str, most: int, file: Callable[[str], tuple[Path, list[Picture]]], given: list[int]
) -> None:
    """Of 96 pictures 4 are looked at; the first is decoded once more, with what its decoder reads ahead."""
    path, _ = file(name)
    threads = os.cpu_count() or 1
    assert len(read(path, fps=1)) == 4
    assert len(given) <= most + threads + 4


def test_the_rate_told_is_the_files_and_no_count(file: Callable[[str], tuple[Path, list[Picture]]]) -> None:
    with open_stream(str(file("short.mp4")[0]), engine="cpu", source={"fps": 2, "end": "0:03"}) as stream:
        assert (stream.header.fps, stream.info.frames) == (RATE, None)
        assert stream.header.config["source"]["fps"] == 2
        assert stream.header.config["source"]["end"] == 3.0


def test_a_late_start_is_sought(file: Callable[[str], tuple[Path, list[Picture]]], given: list[int]) -> None:
    path, _ = file("short.mp4")
    frames = read(path, start=3.5, end=3.6)
    assert [frame.index for frame in frames] == [84, 85, 86]
    assert len(given) <= 14 + (os.cpu_count() or 1)


@pytest.mark.parametrize("name", ["vfr.mp4", "vfr.mkv"])
def test_variable_rate(name: str, tmp_path: Path) -> None:
    """The 30th picture stands for 1.3 s: it is what is shown at 1.5 s and at 2 s, and looked at once."""
    encode(tmp_path / name, *FILES["short.mp4"], gap=30)
    pictures = by_pyav(tmp_path / name)
    for asked in ASKED.values():
        frames = read(tmp_path / name, **asked)
        assert [frame.index for frame in frames] == expected([seconds for seconds, _ in pictures], asked), asked
        assert all(np.array_equal(frame.luma, pictures[frame.index][1]) for frame in frames)
    assert [number_in(frame.luma) for frame in read(tmp_path / name, fps=2)] == [0, 12, 24, 29, 60, 72, 84]
    assert [number_in(frame.luma) for frame in read(tmp_path / name, start=2, end=2.4)] == [29]


@pytest.mark.parametrize("cut", [0.4, 1.1])
def test_an_edit_list_that_begins_within_a_group_of_pictures(
    cut: float, tmp_path: Path, file: Callable[[str], tuple[Path, list[Picture]]]
) -> None:
    """Times, numbers and all count from the first picture that is shown."""
    source, path = file("short.mp4")[0], tmp_path / "edited.mp4"
    with av.open(str(source)) as container, av.open(str(path), "w") as out:
        template = container.streams.video[0]
        stream = out.add_stream_from_template(template)
        for packet in container.demux(template):
            if packet.size and packet.pts is not None and packet.dts is not None:
                late = round(cut / float(packet.time_base))
                packet.pts, packet.dts, packet.stream = packet.pts - late, packet.dts - late, stream
                out.mux(packet)
    pictures = by_pyav(path)
    assert len(pictures) < FRAMES
    for asked in ({"fps": 1}, {"start": 1.5, "end": 2.0}, {"every": 10}):
        frames = read(path, **asked)
        assert [frame.index for frame in frames] == expected([seconds for seconds, _ in pictures], asked)
        assert all(np.array_equal(frame.luma, pictures[frame.index][1]) for frame in frames)


def test_what_cannot_be_sought_is_decoded_through(
    file: Callable[[str], tuple[Path, list[Picture]]], tmp_path: Path
) -> None:
    path, pictures = file("a.ts")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()), daemon=True)
    writer.start()
    frames = read(pipe, start=1, fps=2)
    writer.join(10)
    assert [frame.index for frame in frames] == [24, 36, 48, 60, 72, 84]
    assert all(np.array_equal(frame.luma, pictures[frame.index][1]) for frame in frames)


def test_numbered_pictures(cases: Path) -> None:
    frames = read(cases / "seq" / "f_%04d.png", start=0.2, every=3, rate=10)
    assert [(frame.index, frame.time) for frame in frames] == [(2, 0.2), (5, 0.5), (8, pytest.approx(0.8))]


def test_a_gif(cases: Path) -> None:
    """10 pictures, 0.1 s apart; each is drawn over the one before."""
    whole = read(cases / "I1.gif")
    frames = read(cases / "I1.gif", fps=4)
    assert [frame.index for frame in frames] == [0, 2, 5, 7]
    assert all(np.array_equal(frame.luma, whole[frame.index].luma) for frame in frames)


def test_a_picture_is_looked_at_once(cases: Path) -> None:
    assert len(read(cases / "I1_still.png", fps=5)) == 1


def test_a_first_timestamp_other_than_zero(cases: Path) -> None:
    """It begins at 100 s by its own timestamps; times count from its first picture."""
    frames = read(cases / "T5_start100.mkv", start=1, end=1.05)
    assert [(frame.index, round(frame.time, 2)) for frame in frames] == [(30, 1.0), (31, 1.03)]


def test_a_jump_among_pictures_that_are_left_out(cases: Path) -> None:
    """The times jump by an hour before picture 30; the next one that is looked at tells it."""
    frames = read(cases / "T9_jumps.ts", every=20)
    assert [(frame.index, frame.discontinuity) for frame in frames] == [
        (0, False), (20, False), (40, True), (60, True), (80, False)
    ]  # fmt: skip


def test_a_file_cut_short_gives_what_can_be_decoded_and_says_so(cases: Path) -> None:
    source = open_source(str(cases / "B3_truncated.mp4"), SourceSettings(every=10))
    assert [frame.index for frame in source] == [0, 10, 20, 30]
    assert source.damage.frames > 0
    assert "cut short" in " ".join(source.damage.messages)
    early = open_source(str(cases / "B3_truncated.mp4"), SourceSettings(end=0.5, every=10))
    assert [frame.index for frame in early] == [0, 10]
    assert early.damage.frames == 0  # nothing was lost of what was asked for


def test_a_transport_stream_that_goes_on_under_another_pid(tmp_path: Path) -> None:
    """4 s of one stream, then 4 s of another: both are looked at."""
    options = FILES["a.ts"]
    encode(tmp_path / "1.ts", *options)
    moved = ["-output_ts_offset", "4", "-mpegts_start_pid", "0x200", "-f", "mpegts", str(tmp_path / "2.ts")]
    subprocess.run(["ffmpeg", "-v", "error", "-i", str(tmp_path / "1.ts"), "-c", "copy", *moved], check=True)
    path = tmp_path / "both.ts"
    path.write_bytes(b"".join((tmp_path / name).read_bytes() for name in ("1.ts", "2.ts")))
    frames = read(path, every=16)
    assert [frame.index for frame in frames] == list(range(0, 192, 16))
    assert [number_in(frame.luma) for frame in frames] == [*range(0, 96, 16)] * 2


@pytest.mark.parametrize("name", ["coarse.mp4", "fast.mkv"])
def test_times_that_cannot_tell_the_pictures_apart(name: str, tmp_path: Path) -> None:
    """In units of 1/7 s B-frames get the times of decoding; in Matroska 10,000 pictures a second share theirs."""
    codec, options, _ = FILES["short.mp4"]
    encode(tmp_path / "fast.mkv", codec, options, {}, rate=10_000)
    slower = ["-vf", f"setpts=N/{RATE}/TB", "-r", str(RATE), "-c:v", codec, "-bf", "2", "-video_track_timescale", "7"]
    coarse = ["-i", str(tmp_path / "fast.mkv"), *slower, str(tmp_path / "coarse.mp4")]
    subprocess.run(["ffmpeg", "-v", "error", *coarse], check=True)
    pictures = by_pyav(tmp_path / name)
    frames = read(tmp_path / name, every=7)
    assert [frame.index for frame in frames] == list(range(0, len(pictures), 7))
    assert all(np.array_equal(frame.luma, pictures[frame.index][1]) for frame in frames)


def test_frames_counts_those_that_are_looked_at(file: Callable[[str], tuple[Path, list[Picture]]]) -> None:
    assert [frame.index for frame in read(file("short.mp4")[0], fps=2, frames=3)] == [0, 12, 24]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"start": 100}, "there is no frame at 100 s or later"),
        ({"start": 4}, "there is no frame at 4 s or later"),
        ({"start": -100, "end": -99}, "nothing is between start and end, 0 s and 0 s of it"),
        ({"start": 3, "end": -2}, "nothing is between start and end, 3 s and 2 s of it"),
    ],
)
@pytest.mark.parametrize("name", ["short.mp4", "mpeg4.mp4"])
def test_a_span_without_a_picture_is_an_error(
    asked: dict[str, Any], told: str, name: str, file: Callable[[str], tuple[Path, list[Picture]]]
) -> None:
    with pytest.raises(SourceError, match=told):
        read(file(name)[0], **asked)


def test_a_time_from_an_end_that_is_not_known(file: Callable[[str], tuple[Path, list[Picture]]]) -> None:
    with pytest.raises(SourceError, match="its length is unknown"):
        read(file("raw.h264")[0], start=-1)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"start": 5, "end": 5}, "source.end must be after source.start, 5 s, got 5 s"),
        ({"start": -1, "end": -2}, "source.end must be after source.start, -1 s, got -2 s"),
        ({"end": 0}, "source.end must be after source.start, 0 s, got 0 s"),
        ({"fps": 1, "every": 2}, "source.fps and source.every cannot be combined; give one of them"),
        ({"start": "1:75"}, "source.start must be a time such as 12.5 or 1:02:03.5, got '1:75'"),
        ({"start": True}, "source.start must be a time such as 12.5 or 1:02:03.5, got True"),
        ({"start": float("nan")}, "source.start must be a finite number, got nan"),
        ({"fps": 0}, "source.fps must be greater than or equal to 0.00001, got 0"),
        ({"every": 0}, "source.every must be greater than or equal to 1, got 0"),
    ],
)
def test_settings_that_exclude_each_other(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        open_stream("clip.mp4", source=asked)
    assert str(caught.value) == told


def test_selections_are_those_of_a_video_of_the_sampled_frames(
    tmp_path: Path, file: Callable[[str], tuple[Path, list[Picture]]]
) -> None:
    """Change, flow, keyframes and the reader's memory follow the frames that are looked at."""
    source, _ = file("short.mp4")
    chosen, path = list(range(0, FRAMES, 3)), tmp_path / "sampled.mkv"
    with av.open(str(source)) as container, av.open(str(path), "w") as out:
        stream = out.add_stream("rawvideo", rate=8)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number, frame in enumerate(itertools.islice(container.decode(video=0), 0, None, 3)):
            frame.pts, frame.time_base = number, Fraction(1, 8)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    settings: dict[str, Any] = {"engine": "cpu", "budget": 20, "allocation": {"memory": "stream"}}
    with open_stream(str(source), source={"every": 3}, **settings) as stream_a, open_stream(str(path), **settings) as b:
        for one, other, index in itertools.zip_longest(stream_a, b, chosen):
            assert one.index == index
            assert one.keyframe == other.keyframe
            assert one.changed == other.changed
            assert np.array_equal(one.age, other.age)
            assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("x", "y", "lod", "fresh"))
