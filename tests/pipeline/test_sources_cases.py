"""Inputs that broke other people's pipelines; the numbers are those of tests/cases/make_cases.sh."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from tests.pipeline.made_sources import read


def seconds(frames: list[Frame]) -> list[float]:
    return [frame.time for frame in frames]


def refused(path: Path | str, settings: SourceSettings | None = None) -> str:
    """The message with which a source is refused: one line, soon, naming the path."""
    with pytest.raises(SourceError) as caught:
        open_source(str(path), settings or SourceSettings())
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_t1_variable_frame_rate(cases: Path) -> None:
    _, frames = read(cases / "T1_vfr.mp4")
    expected = [n / 30 for n in range(60) if not 10 <= n <= 29]
    assert seconds(frames) == pytest.approx(expected, abs=1e-4)
    assert frames[10].time == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["T3_nopts.h264", "T3_nopts.m4v"])
def test_t3_no_timestamps(cases: Path, name: str) -> None:
    info, frames = read(cases / name)
    assert seconds(frames) == pytest.approx([n / 30 for n in range(60)])
    assert info.fps == 30
    assert info.notes == ("times made up from the declared rate, 30 frames per second",)


def test_t3_no_timestamps_and_no_declared_rate(cases: Path) -> None:
    info, frames = read(cases / "T3_nopts.mjpeg", SourceSettings(rate=50))
    assert seconds(frames) == pytest.approx([n / 50 for n in range(60)])
    assert info.notes == ("times made up from the rate setting, 50 frames per second",)


def test_t4_a_container_without_presentation_times(cases: Path) -> None:
    _, frames = read(cases / "T4_reordered.avi")
    assert seconds(frames) == pytest.approx([n / 30 for n in range(60)])


def test_t5_a_start_other_than_zero(cases: Path) -> None:
    info, frames = read(cases / "T5_start100.mkv")
    assert len(frames) == 60
    assert info.start == 100.0
    assert frames[0].time == 0.0
    assert frames[30].time == pytest.approx(1.0, abs=1e-3)  # Matroska counts milliseconds


def test_t6_an_edit_list_is_no_damage(cases: Path) -> None:
    _, frames = read(cases / "T6_editlist.mp4")
    assert seconds(frames) == pytest.approx([n / 30 for n in range(45)])


def test_t7_no_frame_count(cases: Path) -> None:
    info, frames = read(cases / "T7_nocount.mkv")
    assert info.frames is None
    assert len(frames) == 60


def test_t8_a_single_frame(cases: Path) -> None:
    info, frames = read(cases / "T8_one.mp4")
    assert (len(frames), info.frames) == (1, 1)


def test_t9_jumping_times(cases: Path) -> None:
    _, frames = read(cases / "T9_jumps.ts")
    assert [frame.index for frame in frames if frame.discontinuity] == [30, 60]
    assert frames[30].time == pytest.approx(3600)
    assert frames[60].time == pytest.approx(3601)


@pytest.mark.parametrize(
    ("name", "start", "expected", "fps"),
    [
        ("T10_vfr.apng", 0.0, [n / 30 for n in range(60) if not 10 <= n <= 29], 40 / 2),
        ("T11_slides.mkv", 100.0, [0, 10, 20, 40, 50], 0.1),
    ],
)
def test_t10_t11_timestamps_that_the_header_does_not_tell_of(
    cases: Path, name: str, start: float, expected: list[float], fps: float
) -> None:
    info, frames = read(cases / name)
    assert seconds(frames) == pytest.approx(expected, abs=1e-3)
    assert (info.start, info.fps) == (start, pytest.approx(fps, rel=0.03))  # of two guesses of FFmpeg's, the closer
    assert info.notes == ()


def test_g5_sample_aspect_is_reported_not_applied(cases: Path) -> None:
    info, _ = read(cases / "G5_aspect.mp4")
    assert (info.width, info.height) == (320, 240)
    assert info.sample_aspect == pytest.approx(16 / 9 * 240 / 320)


def test_g6_size_change(cases: Path) -> None:
    _, frames = read(cases / "G6_sizechange.ts")
    sizes = [(frame.width, frame.height) for frame in frames]
    assert sizes == [(320, 240)] * 30 + [(640, 360)] * 30


def test_c4_interlaced_is_noted(cases: Path) -> None:
    info, frames = read(cases / "C4_interlaced.mp4")
    assert len(frames) == 50
    assert info.interlaced


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("B1_zero.mp4", "is empty"),
        ("B1_text.mp4", "not a video"),
        ("B1_text.txt", "not a video"),
        ("B1_list.mp4", "not a video"),
        ("B1_dir.mp4", "is a directory"),
        ("B1_nomoov.mp4", "an MP4 without its index"),
        ("B1_missing.mp4", "no such file"),
        ("-", "use /dev/stdin"),
        ("B1_text.mp4/x.mp4", "not a directory"),
        ("x" * 300, "name too long"),
        ("nul\0.mp4", "not a file name"),
        ("B2_audio.m4a", "no video stream"),
        ("B5_cover.mp3", "no video stream"),
        ("I3_animated.webp", "an animated WebP, which FFmpeg does not decode"),
    ],
)
def test_b1_b2_what_cannot_be_read_is_refused(
    cases: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(cases)
    if name.isprintable():
        assert reason in refused(name)
    else:
        with pytest.raises(SourceError, match=reason):
            open_source(name, SourceSettings())
    assert capfd.readouterr() == ("", "")


def test_b1_an_empty_address() -> None:
    with pytest.raises(SourceError, match="empty"):
        open_source("", SourceSettings())


def test_b1_no_permission(cases: Path, tmp_path: Path) -> None:
    target = tmp_path / "closed.mp4"
    shutil.copy(cases / "base.mp4", target)
    target.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # root may read everything
    try:
        with pytest.raises(SourceError, match="permission denied"):
            open_source(str(target), SourceSettings())
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("name", ["B5_cover.mp4", "B5_picture_first.mkv", "B5_picture_first.mp4"])
def test_b5_a_cover_is_not_the_video(cases: Path, name: str) -> None:
    info, frames = read(cases / name)
    assert (len(frames), info.width, info.height) == (60, 320, 240)


def test_b5_a_picture_marked_as_default_is_not_the_video(cases: Path) -> None:
    info, frames = read(cases / "B5_picture_default.mkv")
    assert (len(frames), info.width, info.height) == (60, 320, 240)


def test_b6_the_default_stream_or_the_one_asked_for(cases: Path) -> None:
    info, frames = read(cases / "B6_two.mkv")
    assert (len(frames), info.width) == (30, 320)
    info, frames = read(cases / "B6_two.mkv", SourceSettings(stream=0))
    assert (len(frames), info.width) == (10, 64)
    message = refused(cases / "B6_two.mkv", SourceSettings(stream=2))
    assert "no video stream 2; there are 2, counted from 0: choose 0 to 1" in message


@pytest.mark.parametrize(
    "name",
    ["B7 ü 日本 #1.mp4", "B7_%d_%03d.mp4", "-B7.mp4", "B7:with:colons.mp4", "file:B7.mp4"],
)
def test_b7_names_are_taken_literally(cases: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(cases)
    info, frames = read(name)
    assert (len(frames), info.name) == (60, name)


def test_b7_a_name_that_is_not_unicode(cases: Path, tmp_path: Path) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/caf\xe9.mp4")
    shutil.copy(cases / "base.mp4", name)
    info, frames = read(name)
    assert len(frames) == 60
    info.name.encode()


def test_b8_audio_longer_than_the_video_is_no_damage(cases: Path) -> None:
    assert len(read(cases / "B8_longaudio.mkv")[1]) == 60


def test_i1_gif(cases: Path) -> None:
    _, frames = read(cases / "I1.gif")
    assert seconds(frames) == pytest.approx([n / 10 for n in range(10)])


def test_i1_sequence(cases: Path) -> None:
    info, frames = read(cases / "seq/f_%04d.png", SourceSettings(rate=10))
    assert seconds(frames) == pytest.approx([n / 10 for n in range(10)])
    assert (info.frames, info.fps) == (10, 10)
    assert info.notes == ("times made up from the rate setting, 10 frames per second",)


def test_i1_a_percent_sign_in_a_folder_is_a_plain_character(cases: Path) -> None:
    assert len(read(cases / "B7 50%done/f_%04d.png")[1]) == 10


@pytest.mark.parametrize("original", ["a.ts", "base.mp4", "T3_nopts.h264"])
def test_i4_numbered_videos_are_refused(cases: Path, tmp_path: Path, original: str) -> None:
    """Taken for pictures, all but one picture of each would be lost."""
    suffix = Path(original).suffix
    for number in (1, 2):
        shutil.copy(cases / original, tmp_path / f"part{number}{suffix}")
    with pytest.raises(SourceError, match=rf"part2\{suffix}: a numbered name is for pictures"):
        open_source(str(tmp_path / f"part%d{suffix}"), SourceSettings())


def test_i5_pixels_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "bare.yuv").write_bytes(bytes(64 * 64 * 3 // 2))
    assert "without a header" in refused(tmp_path / "bare.yuv")


@pytest.mark.parametrize("name", ["I1_still.png", "I1_%d.png", "I1_[a]*{b}.png", "I2.webp", "I2.jpg"])
def test_i1_still(cases: Path, name: str) -> None:
    info, frames = read(cases / name)
    assert (len(frames), info.width, info.height) == (1, 64, 64)
    assert (info.frames, info.fps) == (1, None)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("S1_static.mp4", 300),
        ("S1_black.mp4", 60),
        ("S1_noise.mp4", 60),
        ("S2_cut60.mp4", 120),
        ("S4_fade.mp4", 180),
    ],
)
def test_s_content(cases: Path, name: str, count: int) -> None:
    assert len(read(cases / name)[1]) == count


MEASURE = """
import resource, sys
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from tests.pipeline.made_sources import read
source = open_source(sys.argv[1], SourceSettings())
print(sum(1 for _ in source), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_m1_memory_does_not_grow_with_length(cases: Path) -> None:
    peaks = []
    for length in (4, 40):
        command = [sys.executable, "-c", MEASURE, str(cases / f"M1_{length}.mp4")]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        count, peak = map(int, output.split())
        assert count == 30 * length
        peaks.append(peak)
    assert peaks[1] <= 1.1 * peaks[0]


@pytest.mark.parametrize(
    ("name", "count", "width", "height", "fps"),
    [("bunny.mp4", 132, 1280, 720, 25), ("pedestrians.mp4", 300, 768, 576, 10), ("tree.mp4", 68, 320, 240, None)],
)
def test_real_clips(samples: Path, name: str, count: int, width: int, height: int, fps: float | None) -> None:
    info, frames = read(samples / name)
    assert (len(frames), info.frames, info.width, info.height) == (count, count, width, height)
    assert not any(frame.discontinuity for frame in frames)
    if fps is not None:
        assert seconds(frames) == pytest.approx([n / fps for n in range(count)])


def test_real_clip_with_irregular_times(samples: Path) -> None:
    _, frames = read(samples / "tree.mp4")
    assert seconds(frames)[:5] == [0.0, 0.733337, 1.133339, 1.600008, 2.066677]  # ffprobe -show_frames
    assert frames[-1].time == 29.533481
    assert not frames[0].subsampled
