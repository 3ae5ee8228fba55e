"""Cropping, by streams and by containers: what is shown is a part of what the whole file shows, to the pixel."""

import struct
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline.frames import Frame, Plane
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.opacity import opaque
from tests.pipeline.heif_files import box
from tests.pipeline.made_sources import ffmpeg, read

WIDTH, HEIGHT = 256, 192
FRAMES = 6
MARGINS = (22, 10, 6, 30)  # left, top, right, bottom
NOTE = "cropping from 256x192 to 228x152"


def whole(path: Path, form: str = "yuv420p", codec: str = "libx264") -> Path:
    """Six pictures without loss, nothing cropped: both sides are multiples of 16 pixels."""
    lossless = {"libx264": ["-qp", "0"], "libx265": ["-x265-params", "lossless=1:log-level=none"]}.get(codec, [])
    source = f"testsrc2=s={WIDTH}x{HEIGHT}:r=30"
    ffmpeg("-f", "lavfi", "-i", source, "-frames:v", str(FRAMES), "-c:v", codec, *lossless, "-pix_fmt", form, str(path))
    return path


def decoded(path: Path, form: str) -> list[list[NDArray[np.uint8]]]:
    """The planes of all pictures, each of the luma's size, by PyAV itself."""
    with av.open(str(path)) as container:
        frames = [frame.reformat(format=form) for frame in container.decode(video=0)]
    return [[grown(plane_of(plane)) for plane in frame.planes] for frame in frames]


def plane_of(plane: av.video.plane.VideoPlane) -> NDArray[np.uint8]:
    return np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, -1)[:, : plane.width]


def grown(plane: Plane) -> Plane:
    return plane if plane.shape == (HEIGHT, WIDTH) else plane.repeat(2, 0).repeat(2, 1)


def assert_cut(frames: list[Frame], pictures: list[list[Plane]], margins: tuple[int, int, int, int]) -> None:
    left, top, right, bottom = margins
    assert len(frames) == len(pictures) == FRAMES
    for frame, picture in zip(frames, pictures, strict=True):
        shown = [frame.luma, *(frame.chroma or ())]
        for mine, plane in zip(shown, picture, strict=True):
            wanted = plane[top : HEIGHT - bottom, left : WIDTH - right]
            full = mine if mine.shape == wanted.shape else mine.repeat(2, 0).repeat(2, 1)
            assert np.array_equal(full[: wanted.shape[0], : wanted.shape[1]], wanted)
            assert not mine.flags.writeable


@pytest.mark.parametrize(
    ("codec", "suffix", "form", "margins"),
    [
        ("libx264", "h264", "yuv420p", MARGINS),
        ("libx264", "h264", "yuv444p", (21, 9, 7, 31)),
        ("libx265", "hevc", "yuv420p", MARGINS),
        ("libx264", "h264", "yuv420p", (64, 64, 64, 0)),
        ("libx264", "h264", "yuv420p", (2, 0, 0, 0)),
    ],
)
def test_what_the_stream_crops(
    tmp_path: Path, codec: str, suffix: str, form: str, margins: tuple[int, int, int, int]
) -> None:
    """FFmpeg's decoders round at the left, unless asked not to."""
    original = whole(tmp_path / f"whole.{suffix}", form, codec)
    sides = ":".join(f"crop_{side}={n}" for side, n in zip(("left", "top", "right", "bottom"), margins, strict=True))
    ffmpeg("-i", str(original), "-c", "copy", "-bsf:v", f"{suffix}_metadata={sides}", str(tmp_path / f"cut.{suffix}"))
    info, frames = read(tmp_path / f"cut.{suffix}")
    assert (info.width, info.height) == (WIDTH - margins[0] - margins[2], HEIGHT - margins[1] - margins[3])
    assert_cut(frames, decoded(original, form), margins)


@pytest.mark.parametrize("form", ["yuv420p10le", "yuv422p"])
def test_what_the_stream_crops_of_formats_that_are_converted(tmp_path: Path, form: str) -> None:
    """Within one level: libswscale dithers, by the place of a pixel in what it is given."""
    original = whole(tmp_path / "whole.h264", form)
    ffmpeg("-i", str(original), "-c", "copy", "-bsf:v", "h264_metadata=crop_left=22", str(tmp_path / "cut.h264"))
    _, frames = read(tmp_path / "cut.h264")
    _, expected = read(original)
    for frame, before in zip(frames, expected, strict=True):
        assert np.abs(frame.luma.astype(int) - before.luma[:, 22:]).max() <= 1


@pytest.mark.parametrize("margins", [MARGINS, (23, 11, 5, 29), (0, 1, 0, 0), (0, 0, 7, 3)])
def test_a_clean_aperture(tmp_path: Path, margins: tuple[int, int, int, int]) -> None:
    original = whole(tmp_path / "whole.mp4")
    info, frames = read(with_clap(original, aperture(*margins)))
    assert_cut(frames, decoded(original, "yuv420p"), margins)
    width, height = WIDTH - margins[0] - margins[2], HEIGHT - margins[1] - margins[3]
    assert info.notes == (f"cropping from 256x192 to {width}x{height}",)
    assert (info.width, info.height) == (width, height)


@pytest.mark.parametrize(
    "terms",
    [
        struct.pack(">IIIIiIiI", 256, 1, 192, 1, 0, 1, 0, 1),  # all of it
        struct.pack(">IIIIiIiI", 228, 0, 152, 1, 0, 1, 0, 1),  # a fraction of nothing
        struct.pack(">IIIIiIiI", 10, 1, 10, 1, 900, 1, 0, 1),  # beside the picture
        b"\0\0\0\1",
    ],
)
def test_a_clean_aperture_that_says_nothing(tmp_path: Path, terms: bytes) -> None:
    original = whole(tmp_path / "whole.mp4")
    info, frames = read(with_clap(original, box(b"clap", terms)))
    assert_cut(frames, decoded(original, "yuv420p"), (0, 0, 0, 0))
    assert info.notes == ()


def test_a_clean_aperture_for_another_size_is_noted(tmp_path: Path) -> None:
    path = with_clap(whole(tmp_path / "whole.mp4"), aperture(*MARGINS))
    data = bytearray(path.read_bytes())
    place = data.index(b"avc1", data.index(b"stsd")) + 4 + 24
    data[place : place + 2] = struct.pack(">H", 512)
    path.write_bytes(data)
    info, frames = read(path)
    assert info.notes == ("cropping from 512x192 to 228x152 not applied: it is 256x192",)
    assert (frames[0].width, frames[0].height) == (256, 192)


def test_first_cropped_and_then_turned(tmp_path: Path) -> None:
    original = whole(tmp_path / "whole.mp4")
    path = with_clap(original, aperture(*MARGINS))
    data = bytearray(path.read_bytes())
    place = data.index(b"tkhd") + 4 + 40
    data[place : place + 20] = struct.pack(">5i", 0, 65536, 0, -65536, 0)  # a quarter turn clockwise
    path.write_bytes(data)
    _, frames = read(path)
    left, top, right, bottom = MARGINS
    for frame, (luma, *_) in zip(frames, decoded(original, "yuv420p"), strict=True):
        assert np.array_equal(frame.luma, np.rot90(luma[top : HEIGHT - bottom, left : WIDTH - right], 3))


@pytest.mark.parametrize("margins", [MARGINS, (23, 11, 5, 29)])
@pytest.mark.parametrize("endless", [False, True])
def test_pixel_crop_of_matroska(tmp_path: Path, margins: tuple[int, int, int, int], endless: bool) -> None:
    original = whole(tmp_path / "whole.mkv")
    if endless:  # sizes unknown, as when it is written to a pipe
        ffmpeg("-i", str(original), "-c", "copy", "-live", "1", str(tmp_path / "live.mkv"))
    data = (tmp_path / "live.mkv" if endless else original).read_bytes()
    left, top, right, bottom = margins
    sides = {"54AA": bottom, "54BB": top, "54CC": left, "54DD": right}
    crops = b"".join(unsigned(identity, pixels) for identity, pixels in sides.items())
    path = tmp_path / "cut.mkv"
    path.write_bytes(inserted(data, [bytes.fromhex(name) for name in ("18538067", "1654AE6B", "AE", "E0")], crops))
    info, frames = read(path)
    assert info.notes == (f"cropping from 256x192 to {WIDTH - left - right}x{HEIGHT - top - bottom}",)
    assert_cut(frames, decoded(original, "yuv420p"), margins)


def test_each_track_has_its_own(tmp_path: Path) -> None:
    original, both = whole(tmp_path / "whole.mp4"), tmp_path / "both.mp4"
    ffmpeg("-i", str(original), "-i", str(original), "-map", "0", "-map", "1", "-c", "copy", str(both))
    path = with_clap(both, aperture(*MARGINS))
    for stream, size in enumerate([(228, 152), (256, 192)]):
        source = open_source(str(path), SourceSettings(stream=stream))
        assert (source.info.width, source.info.height) == size
        source.close()


def test_what_can_be_seen_through_is_cropped_as_well(tmp_path: Path) -> None:
    original = tmp_path / "whole.mov"
    source = f"color=red:s={WIDTH}x{HEIGHT},format=rgba,geq=r=255:g=0:b=0:a='255*gt(X,99)*gt(Y,49)'"
    ffmpeg("-f", "lavfi", "-i", source, "-frames:v", "1", "-c:v", "qtrle", "-pix_fmt", "argb", str(original))
    found = opaque(with_clap(original, aperture(*MARGINS)))
    assert found is not None
    rows, columns = np.indices((HEIGHT, WIDTH))
    expected = (columns > 99) & (rows > 49)
    assert np.array_equal(found, expected[10:162, 22:250])


def aperture(left: int, top: int, right: int, bottom: int) -> bytes:
    """The offset of the centre is half of the difference of two sides: in halves of a pixel."""
    wide, high = WIDTH - left - right, HEIGHT - top - bottom
    return box(b"clap", struct.pack(">IIIIiIiI", wide, 1, high, 1, left - right, 2, top - bottom, 2))


def with_clap(path: Path, aperture: bytes) -> Path:
    """A copy of an MP4 file whose index is at its end, with a box behind those of the first sample entry."""
    target = path.with_stem("clap")
    target.write_bytes(inserted_box(path.read_bytes(), aperture))
    return target


def inserted_box(data: bytes, extra: bytes) -> bytes:
    """Grow all boxes around the first sample entry, and put ``extra`` at its end."""
    path = [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd"]
    grown, start, ends = bytearray(data), 0, len(data)
    for kind in path:
        start = data.index(kind, start, ends) - 4
        ends = start + int.from_bytes(data[start : start + 4], "big")
        grown[start : start + 4] = struct.pack(">I", ends - start + len(extra))
        start += 8
    entry = start + 8
    size = int.from_bytes(data[entry : entry + 4], "big")
    grown[entry : entry + 4] = struct.pack(">I", size + len(extra))
    return bytes(grown[: entry + size]) + extra + bytes(grown[entry + size :])


def unsigned(identity: str, value: int) -> bytes:
    return bytes.fromhex(identity) + b"\x81" + bytes([value])


def inserted(data: bytes, path: list[bytes], extra: bytes) -> bytes:
    """EBML with ``extra`` at the end of the first element of the path; sizes on the way are mended (RFC 8794, 4)."""
    out, at = b"", 0
    while at < len(data):
        named = 9 - data[at].bit_length()
        sized = 9 - data[at + named].bit_length()
        start = at + named + sized
        size = int.from_bytes(data[at + named : start], "big") & ((1 << 7 * sized) - 1)
        unknown = size == (1 << 7 * sized) - 1
        body = data[start:] if unknown else data[start : start + size]
        if path and data[at : at + named] == path[0]:
            body = inserted(body, path[1:], extra) if path[1:] else body + extra
            told = data[at + named : start] if unknown else (len(body) | 1 << 56).to_bytes(8, "big")
            out, path = out + data[at : at + named] + told + body, []
        else:
            out += data[at:start] + body
        at = len(data) if unknown else start + size
    return out
