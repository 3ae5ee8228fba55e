"""Kinds of files that broke other people's pipelines: codecs, containers, clocks, tracks and names, one of each kind.

Pictures show their number, so that each row says which ones come, and when.
"""

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from tests.pipeline.made_sources import ffmpeg, read
from tests.pipeline.numbered import coded, number, pictures

MILLISECOND = 0.001  # what Matroska, FLV and ASF count in


def check(path: Path, numbers: list[int], times: list[float], tolerance: float = 0.0006) -> SourceInfo:
    """The pictures and times are these, and nothing jumps. Containers that count milliseconds are half of one off."""
    info, frames = read(path)
    assert [number(frame) for frame in frames] == numbers
    assert [frame.time for frame in frames] == pytest.approx(times, abs=tolerance)
    assert not any(frame.discontinuity for frame in frames)
    return info


CODECS: dict[str, list[object]] = {
    "mpeg1.mpg": ["-c:v", "mpeg1video", "-q:v", 2],
    "mpeg2.vob": ["-c:v", "mpeg2video", "-q:v", 2, "-f", "vob"],
    "mpeg4.avi": ["-c:v", "mpeg4", "-q:v", 2, "-bf", 2],
    "ms4.avi": ["-c:v", "msmpeg4v3", "-q:v", 2],
    "wmv2.wmv": ["-c:v", "wmv2", "-q:v", 2],
    "svq1.mov": ["-c:v", "svq1"],
    "qtrle.mov": ["-c:v", "qtrle"],
    "smc.mov": ["-c:v", "smc"],
    "ffvhuff.avi": ["-c:v", "ffvhuff"],
    "flashsv.flv": ["-c:v", "flashsv"],
    "snow.avi": ["-c:v", "snow"],
    "prores.mov": ["-c:v", "prores"],
    "j2k.mkv": ["-c:v", "jpeg2000"],
    "mjpeg.mov": ["-c:v", "mjpeg", "-q:v", 2],
    "theora.ogv": ["-c:v", "libtheora", "-q:v", 8],
    "vp8.webm": ["-c:v", "libvpx", "-deadline", "realtime"],
    "vp9.ivf": ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", 8],
    "av1.mp4": ["-c:v", "libsvtav1", "-preset", 10],
    "hevc.ts": ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"],
    "h264.avi": ["-c:v", "libx264", "-preset", "fast", "-bf", 2],
    "h264.flv": ["-c:v", "libx264", "-preset", "fast", "-bf", 2],
    "h264.m2ts": ["-c:v", "libx264", "-mpegts_m2ts_mode", 1, "-f", "mpegts"],
    "refresh.ts": ["-c:v", "libx264", "-x264-params", "intra-refresh=1:keyint=20"],
    "apng.png": ["-f", "apng"],
    "raw.y4m": [],
    "flv1.swf": ["-c:v", "flv1", "-q:v", 2],
}


@pytest.mark.parametrize("name", CODECS)
def test_codecs_and_containers_old_and_new(tmp_path: Path, name: str) -> None:
    size = ["-s", "176x144"] if name == "rv20.rm" else []
    ffmpeg(*pictures(), "-frames:v", 30, *CODECS[name], *size, tmp_path / name)
    if size:
        assert [frame.time for frame in read(tmp_path / name)[1]] == pytest.approx(
            [n / 30 for n in range(30)], abs=0.001
        )
    else:
        check(tmp_path / name, list(range(30)), [n / 30 for n in range(30)])


@pytest.mark.parametrize(
    ("name", "codec"), [("av1.mp4", "av1"), ("vp9.ivf", "vp9"), ("h264.flv", "h264"), ("j2k.mkv", "jpeg2000")]
)
def test_what_is_told_is_the_codec_and_not_its_decoder(tmp_path: Path, name: str, codec: str) -> None:
    """FFmpeg decodes AV1 by libdav1d."""
    ffmpeg(*pictures(), "-frames:v", 4, *CODECS[name], tmp_path / name)
    assert read(tmp_path / name)[0].codec == codec


SPARSE: dict[str, tuple[str, list[float]]] = {
    "9 s": ("N*9", [9.0 * n for n in range(12)]),
    "12 s": ("N*12", [12.0 * n for n in range(12)]),
    "an hour": ("N*3600", [3600.0 * n for n in range(12)]),
    "slides": (
        r"if(lt(N\,4)\,N/30\,if(lt(N\,8)\,30+N/30\,N*17))",
        [*(n / 30 for n in range(4)), *(30 + n / 30 for n in range(4, 8)), *(17.0 * n for n in range(8, 12))],
    ),
}


@pytest.mark.parametrize("container", ["mkv", "mp4"])
@pytest.mark.parametrize("kind", SPARSE)
def test_a_picture_that_stands_for_long_is_no_discontinuity(tmp_path: Path, kind: str, container: str) -> None:
    expression, times = SPARSE[kind]
    path = tmp_path / f"a.{container}"
    coded(path, "-vf", f"setpts={expression}/TB", "-vsync", "vfr", count=12)
    check(path, list(range(12)), times)


@pytest.mark.parametrize(
    ("rate", "seconds"), [("240", 1 / 240), ("1000", 0.001), ("1/10", 10.0), ("24000/1001", 1001 / 24000)]
)
@pytest.mark.parametrize("container", ["mkv", "mp4"])
def test_rates_of_all_sizes(tmp_path: Path, rate: str, seconds: float, container: str) -> None:
    path = tmp_path / f"a.{container}"
    ffmpeg(*pictures(rate=rate), "-frames:v", 40, "-c:v", "libx264", "-pix_fmt", "yuv420p", path)
    check(path, list(range(40)), [n * seconds for n in range(40)])


def test_ten_thousand_pictures_a_second_in_a_container_that_counts_milliseconds(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"
    ffmpeg(*pictures(rate=10000), "-frames:v", 60, "-c:v", "libx264", "-pix_fmt", "yuv420p", path)
    check(path, list(range(60)), [n / 10000 for n in range(60)], tolerance=MILLISECOND)


def remuxed(source: Path, target: Path, stamp: Callable[[int], int]) -> Path:
    """The same packets, number n stamped ``stamp(n)`` milliseconds."""
    with av.open(str(source)) as container, av.open(str(target), "w") as out:
        stream = out.add_stream_from_template(container.streams.video[0])
        for n, packet in enumerate(p for p in container.demux(video=0) if p.size):
            packet.stream, packet.pts, packet.dts = stream, stamp(n), stamp(n)
            out.mux(packet)
    return target


@pytest.mark.parametrize(("group", "step"), [(2, 66), (30, 0)], ids=["in pairs", "all the same"])
def test_repeated_timestamps(tmp_path: Path, group: int, step: int) -> None:
    ffmpeg(*pictures(), "-frames:v", 30, "-c:v", "ffv1", tmp_path / "a.mkv")
    path = remuxed(tmp_path / "a.mkv", tmp_path / "b.mkv", lambda n: n // group * step)
    check(path, list(range(30)), [n // group * step / 1000 for n in range(30)], tolerance=0.034)


@pytest.mark.parametrize(("name", "offset"), [("55h.mkv", 200_000), ("wrap.ts", 95_441.2), ("late_wrap.ts", 95_443.0)])
def test_times_far_from_zero_and_beyond_33_bits(tmp_path: Path, name: str, offset: float) -> None:
    """The clock of MPEG-TS wraps after 2^33 / 90,000 s = 95,443.7 s."""
    ffmpeg(
        *pictures(),
        "-frames:v",
        90,
        "-c:v",
        "libx264",
        "-pix_fmt",
        "yuv420p",
        "-output_ts_offset",
        offset,
        tmp_path / name,
    )
    check(tmp_path / name, [n % 256 for n in range(90)], [n / 30 for n in range(90)])


@pytest.mark.parametrize(
    ("form", "codec"), [("asf", "msmpeg4"), ("flv", "flv1"), ("avi", "mpeg4"), ("matroska", "mpeg4")]
)
def test_written_to_a_pipe_without_length(tmp_path: Path, form: str, codec: str) -> None:
    command = ["ffmpeg", "-nostdin", "-v", "error", *pictures(), "-frames:v", "60", "-c:v", codec, "-q:v", "2"]
    made = subprocess.run([*command, "-f", form, "pipe:1"], capture_output=True, check=True, timeout=60)
    (tmp_path / "a").write_bytes(made.stdout)
    assert check(tmp_path / "a", list(range(60)), [n / 30 for n in range(60)]).frames is None


@pytest.mark.parametrize("flags", ["frag_keyframe", "frag_keyframe+empty_moov+default_base_moof+dash"])
def test_fragments_that_the_header_does_not_count(tmp_path: Path, flags: str) -> None:
    coded(tmp_path / "a.mp4", "-g", 10, "-movflags", flags, count=60)
    check(tmp_path / "a.mp4", list(range(60)), [n / 30 for n in range(60)])


def test_a_header_that_counts_too_many(tmp_path: Path) -> None:
    ffmpeg(*pictures(), "-frames:v", 30, "-c:v", "mpeg4", "-q:v", 2, tmp_path / "a.avi")
    data = bytearray((tmp_path / "a.avi").read_bytes())
    for header, field in ((b"avih", 16), (b"strh", 32)):
        at = data.find(header) + 8 + field
        data[at : at + 4] = struct.pack("<I", 431)
    (tmp_path / "a.avi").write_bytes(data)
    check(tmp_path / "a.avi", list(range(30)), [n / 30 for n in range(30)])


def test_empty_chunks_of_an_avi_are_gaps(tmp_path: Path) -> None:
    ffmpeg(*pictures(), "-frames:v", 30, "-c:v", "mjpeg", "-q:v", 2, tmp_path / "a.avi")
    kept = [n for n in range(30) if n % 3 != 1]
    with av.open(str(tmp_path / "a.avi")) as container, av.open(str(tmp_path / "b.avi"), "w") as out:
        stream = out.add_stream_from_template(container.streams.video[0])
        for n, packet in enumerate(p for p in container.demux(video=0) if p.size):
            packet.stream = stream
            if n in kept:
                out.mux(packet)
    check(tmp_path / "b.avi", kept, [n / 30 for n in kept])


@pytest.mark.parametrize("name", ["a.h264", "a.ts"])
def test_joined_in_the_middle(tmp_path: Path, name: str) -> None:
    whole = coded(tmp_path / name, "-g", 30, "-sc_threshold", 0, count=90).read_bytes()
    (tmp_path / name).write_bytes(whole[len(whole) // 188 * 3 // 10 * 188 :])
    check(tmp_path / name, list(range(30, 90)), [n / 30 for n in range(60)])


def test_tracks_beside_the_video(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nhello\n")
    sound, video = ["-f", "lavfi", "-i", "sine=d=1"], ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-t", 1]
    ffmpeg(*sound, *pictures(), "-map", 0, "-map", 1, *video, "-timecode", "01:02:03:04", tmp_path / "timecode.mov")
    ffmpeg(
        "-i", tmp_path / "a.srt", *pictures(), "-map", 0, "-map", 1, "-c:s", "mov_text", *video, tmp_path / "text.mp4"
    )
    for name in ("timecode.mov", "text.mp4"):
        check(tmp_path / name, list(range(30)), [n / 30 for n in range(30)])


def test_a_first_video_track_without_a_picture(tmp_path: Path) -> None:
    coded(tmp_path / "a.mov")
    with av.open(str(tmp_path / "a.mov")) as container, av.open(str(tmp_path / "b.mov"), "w") as out:
        source = container.streams.video[0]
        out.add_stream_from_template(source)
        stream = out.add_stream_from_template(source)
        for packet in container.demux(source):
            if packet.size:
                packet.stream = stream
                out.mux(packet)
    check(tmp_path / "b.mov", list(range(30)), [n / 30 for n in range(30)])


@pytest.mark.parametrize("name", ["a.avi", "a.mp3", "a.txt", "a.jpg", "a"])
def test_a_video_under_another_kind_of_name(tmp_path: Path, name: str) -> None:
    coded(tmp_path / "a.mp4").rename(tmp_path / name)
    check(tmp_path / name, list(range(30)), [n / 30 for n in range(30)])


@pytest.mark.parametrize("name", ["list.mp4", "list.mkv", "list"])
@pytest.mark.parametrize("target", ["file:///etc/passwd", "http://127.0.0.1:1/a.ts"])
def test_a_playlist_under_another_name_is_not_followed(tmp_path: Path, name: str, target: str) -> None:
    path = tmp_path / name
    path.write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{target}\n#EXT-X-ENDLIST\n")
    with pytest.raises(SourceError, match="not a video") as caught:
        open_source(str(path), SourceSettings())
    assert "root:" not in str(caught.value)


def animation(path: Path, disposal: list[int], blend: list[int]) -> Path:
    """Red; a green square over it; a blue corner; a white corner opposite."""
    image = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install pillow")
    boxes = (((255, 0, 0), 0, 32), ((0, 255, 0), 8, 24), ((0, 0, 255), 0, 8), ((255, 255, 255), 24, 32))
    frames = []
    for colour, begin, end in boxes:
        pixels = np.zeros((32, 32, 4), np.uint8)
        pixels[begin:end, begin:end] = (*colour, 255)
        frames.append(image.fromarray(pixels))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=100, disposal=disposal, blend=blend)
    return path


RED, GREEN, BLUE, WHITE, CLEAR = 76, 150, 29, 255, 0  # luma (ITU-T T.871)
ANIMATIONS: dict[str, tuple[list[int], list[list[int]]]] = {
    # at the blue corner, within the green square, and at the white corner, of each picture
    "none": ([0, 0, 0, 0], [[RED] * 3, [RED, GREEN, RED], [BLUE, GREEN, RED], [BLUE, GREEN, WHITE]]),
    "previous": ([0, 2, 2, 0], [[RED] * 3, [RED, GREEN, RED], [BLUE, RED, RED], [RED, RED, WHITE]]),
    "previous, then background": (
        [0, 2, 1, 0],
        [[RED] * 3, [RED, GREEN, RED], [BLUE, RED, RED], [CLEAR, CLEAR, WHITE]],
    ),
    "background": ([0, 1, 0, 0], [[RED] * 3, [RED, GREEN, RED], [BLUE, CLEAR, CLEAR], [BLUE, CLEAR, WHITE]]),
}


@pytest.mark.parametrize("kind", ANIMATIONS)
def test_pictures_of_an_animated_png_replace_each_other_as_they_say(tmp_path: Path, kind: str) -> None:
    disposal, expected = ANIMATIONS[kind]
    _, frames = read(animation(tmp_path / "a.png", disposal, [0, 1, 1, 1]))
    found = [[int(frame.luma[at, at]) for at in (4, 16, 28)] for frame in frames]
    assert np.abs(np.array(found) - expected).max() <= 1


def test_the_largest_picture_of_an_icon(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install pillow")
    image.new("RGB", (64, 64), (255, 0, 0)).save(tmp_path / "a.ico", sizes=[(16, 16), (64, 64), (32, 32)])
    info, frames = read(tmp_path / "a.ico")
    assert (len(frames), info.width, info.height) == (1, 64, 64)
