"""Turning that containers, photos and streams ask for; the upright picture is known beforehand."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from foveate.pipeline import open_stream
from foveate.pipeline.frames import Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from tests.pipeline.made_sources import ffmpeg, read

WIDTH, HEIGHT = 96, 64
CORNERS = {"red": (255, 0, 0), "lime": (0, 255, 0), "blue": (0, 0, 255), "white": (255, 255, 255)}
STORED = {  # how the upright picture lies in a file of each orientation (Exif 2.32, 4.6.4, tag 0x0112)
    1: lambda upright: upright,
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.transpose(1, 0, 2),
    6: lambda upright: np.rot90(upright, 1),
    7: lambda upright: np.rot90(upright.transpose(1, 0, 2), 2),
    8: lambda upright: np.rot90(upright, -1),
}


def upright() -> NDArray[np.uint8]:
    """Four quarters in four colours: red and lime above, blue and white below."""
    picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    quarters = [np.s_[:32, :48], np.s_[:32, 48:], np.s_[32:, :48], np.s_[32:, 48:]]
    for quarter, colour in zip(quarters, CORNERS.values(), strict=True):
        picture[quarter] = colour
    return picture


def corners(frame: Frame, inset: int = 8) -> list[str]:
    """The nearest of the four colours at each corner, row by row, by luma and Cb alone: these tell them apart."""
    assert frame.chroma is not None
    blue = frame.chroma[0]
    grown = blue if blue.shape == frame.luma.shape else blue.repeat(2, 0).repeat(2, 1)
    known = {"red": (76, 85), "lime": (150, 44), "blue": (29, 255), "white": (255, 128)}  # BT.601, full range
    found = []
    for row, column in ((inset, inset), (inset, -inset), (-inset, inset), (-inset, -inset)):
        luma, cb = float(frame.luma[row, column]), float(grown[: frame.height, : frame.width][row, column])
        if not frame.colour.full_range:
            luma, cb = (luma - 16) * 255 / 219, (cb - 128) * 255 / 224 + 128
        found.append(min(known, key=lambda name: (known[name][0] - luma) ** 2 + (known[name][1] - cb) ** 2))
    return found


def saved(path: Path, orientation: int) -> Path:
    exif = Image.Exif()
    exif[0x0112] = orientation
    known: dict[str, dict[str, Any]] = {".jpg": {"quality": 95, "subsampling": 0}, ".webp": {"lossless": True}}
    options = known.get(path.suffix, {})
    Image.fromarray(np.ascontiguousarray(STORED[orientation](upright()))).save(path, exif=exif, **options)
    return path


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tif", ".avif"])
@pytest.mark.parametrize("orientation", STORED)
def test_photos_stand_upright_and_unmirrored(tmp_path: Path, suffix: str, orientation: int) -> None:
    """In AVIF, Pillow writes the orientation as the properties irot and imir, which count there."""
    info, (frame,) = read(saved(tmp_path / f"photo{suffix}", orientation))
    assert (frame.width, frame.height) == (info.width, info.height) == (WIDTH, HEIGHT)
    assert corners(frame) == list(CORNERS)
    assert info.mirrored is (orientation in {2, 4, 5, 7})


def test_each_of_numbered_photos_has_an_orientation_of_its_own(tmp_path: Path) -> None:
    """Neighbours are such that FFmpeg tells the same angle of both, and one of them is mirrored."""
    for number, orientation in enumerate((1, 4, 3, 2, 6, 5, 8, 7)):
        saved(tmp_path / f"f_{number}.jpg", orientation)
    _, frames = read(tmp_path / "f_%d.jpg")
    assert [corners(frame) for frame in frames] == [list(CORNERS)] * 8


@pytest.mark.parametrize("suffix", [".h264", ".ts", ".mp4"])
@pytest.mark.parametrize("settings", [{"every": 4}, {"start": 0.05, "every": 4}, {"start": 0.3}])
def test_what_is_not_looked_at_turns_what_is(tmp_path: Path, suffix: str, settings: dict[str, Any]) -> None:
    """The orientation is told with a picture that is passed over."""
    path = elementary(tmp_path, "rotate=90")
    if suffix != ".h264":
        ffmpeg("-r", "25", "-i", str(path), "-c", "copy", str(path.with_suffix(suffix)))
    source = open_source(str(path.with_suffix(suffix)), SourceSettings(**settings))
    frames = list(source)
    source.close()
    assert any(6 < frame.index < 12 for frame in frames)
    for frame in frames:
        assert (frame.width, frame.height) == ((HEIGHT, WIDTH) if 6 <= frame.index < 12 else (WIDTH, HEIGHT))


def test_a_skewed_orientation_that_begins_in_the_middle_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = elementary(tmp_path, "rotate=30")
    info, frames = read(path)
    assert info.unsupported_orientation is None
    assert [corners(frame) for frame in frames] == [list(CORNERS)] * 18
    assert [message for message in caplog.messages if "cannot be applied: rotation by 30 degrees" in message] == [
        f"{path}: in the middle begins what cannot be applied: rotation by 30 degrees"
    ]


@pytest.mark.parametrize(
    ("terms", "orientation"),
    [
        ((0.5**0.5, 0.5**0.5, -(0.5**0.5), 0.5**0.5), "rotation by -45 degrees"),
        ((1, 0.5, 0, 1), "display matrix (1, 0.5, 0, 1)"),
        ((0.6, 0.8, 0.8, -0.6), "display matrix (0.6, 0.8, 0.8, -0.6)"),
    ],
)
def test_what_cannot_be_applied_is_noted(tmp_path: Path, terms: tuple[float, ...], orientation: str) -> None:
    path = elementary(tmp_path, "rotate=0").with_suffix(".mp4")
    ffmpeg("-i", str(path.with_stem("plain").with_suffix(".h264")), "-c", "copy", str(path))
    data = bytearray(path.read_bytes())
    place = data.index(b"tkhd") + 4 + 40
    for offset, term in zip((0, 4, 12, 16), terms, strict=True):  # a, b, c, d (ISO/IEC 14496-12, 8.3.2)
        data[place + offset : place + offset + 4] = struct.pack(">i", round(term * 65536))
    path.write_bytes(data)
    info, frames = read(path)
    assert info.unsupported_orientation == orientation
    assert corners(frames[0]) == list(CORNERS)


def elementary(folder: Path, change: str) -> Path:
    """H.264 of six pictures, six with a display orientation told with the first of them, and six without one again."""
    plain, turned, whole = folder / "plain.h264", folder / "turned.h264", folder / "whole.h264"
    Image.fromarray(upright()).save(folder / "still.png")
    encode = ["-pix_fmt", "yuv420p", "-c:v", "libx264", "-bf", "0", "-qp", "4", str(plain)]
    insert = ["-c", "copy", "-bsf:v", f"h264_metadata=display_orientation=insert:{change}", str(turned)]
    ffmpeg("-loop", "1", "-i", str(folder / "still.png"), "-frames:v", "6", *encode)
    ffmpeg("-i", str(plain), *insert)
    whole.write_bytes(plain.read_bytes() + turned.read_bytes() + plain.read_bytes())
    return whole


@pytest.mark.parametrize(
    ("change", "size", "after"),
    [
        ("flip=vertical", (WIDTH, HEIGHT), ["blue", "white", "red", "lime"]),
        ("flip=horizontal", (WIDTH, HEIGHT), ["lime", "red", "white", "blue"]),
        ("rotate=90", (HEIGHT, WIDTH), ["lime", "white", "red", "blue"]),
    ],
)
def test_an_orientation_that_begins_in_the_middle(
    tmp_path: Path, change: str, size: tuple[int, int], after: list[str]
) -> None:
    """ITU-T H.264, D.2.27: flips, then a turn counter-clockwise."""
    path = elementary(tmp_path, change)
    _, frames = read(path)
    assert [corners(frame) for frame in frames] == [list(CORNERS)] * 6 + [after] * 6 + [list(CORNERS)] * 6
    assert [(frame.width, frame.height) for frame in frames[6:12]] == [size] * 6
    with open_stream(str(path), allocation={"memory": "stream"}) as stream:
        keyframes = [selection.index for selection in stream if selection.keyframe]
    assert size == (WIDTH, HEIGHT) or keyframes == [0, 6, 12]
