"""What the hardware would show uncropped or unturned is decoded on the CPU. A stand-in takes the card's place."""

import logging
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.cuda.decode import source as under_test
from foveate.cuda.decode.annex_b import leading_units
from foveate.cuda.decode.geometry import CROPPED, TURNED, GeometryWatch
from foveate.cuda.decode.source import DeviceSource, on_device
from foveate.pipeline import open_stream
from foveate.pipeline.frames import Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from tests.cuda.test_ahead import card, library, vouches  # noqa: F401 - fixtures
from tests.pipeline.made_sources import ffmpeg, read
from tests.pipeline.test_sources_cropping import with_clap

SETTINGS = SourceSettings()


@pytest.fixture(autouse=True)
def able_hardware(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that can decode everything, unless there is a real one."""
    if request.node.get_closest_marker("gpu") is None:
        request.getfixturevalue("card")
        monkeypatch.setattr(under_test, "codec_problem", lambda *_: None)


def made(path: Path, *arguments: str, size: str = "96x64") -> Path:
    encode = ["-c:v", "libx265" if "hevc" in path.name else "libx264", "-bf", "0", "-pix_fmt", "yuv420p"]
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=s={size}:r=25", "-frames:v", "10", *encode, *arguments, str(path))
    return path


def changed(path: Path, *arguments: str) -> Path:
    target = path.with_stem("changed")
    ffmpeg("-i", str(path), "-c", "copy", *arguments, str(target))
    return target


def problem_of(path: Path) -> str | None:
    """Why the pictures of a file are decoded on the CPU."""
    opened = open_source(str(path), SETTINGS)
    source = on_device(opened, str(path), SETTINGS)
    source.close()
    assert isinstance(source, DeviceSource) is (source.info.decoded_on_cpu is None)
    return source.info.decoded_on_cpu


@pytest.mark.parametrize("name", ["plain.mp4", "plain.ts", "plain-hevc.mp4", "plain-hevc.ts"])
@pytest.mark.parametrize("size", ["96x64", "90x50"])
def test_ordinary_files_are_left_to_the_hardware(tmp_path: Path, name: str, size: str) -> None:
    """Also where rows and columns are cropped at the right and at the bottom, to which pictures are padded."""
    assert problem_of(made(tmp_path / name, size=size)) is None


@pytest.mark.parametrize("side", ["left", "top"])
@pytest.mark.parametrize("name", ["plain.mp4", "plain.mkv", "plain.ts", "plain-hevc.mp4"])
def test_streams_that_crop_at_the_left_or_the_top_are_not(
    tmp_path: Path,
    name: str,
    side: str,
) -> None:
    codec = "hevc" if "hevc" in name else "h264"
    path = changed(made(tmp_path / name), "-bsf:v", f"{codec}_metadata=crop_{side}=16")
    assert problem_of(path) == CROPPED


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plain.mp4", ["-profile:v", "baseline"]),
        ("plain.mp4", ["-x264-params", "cqm=jvt"]),
        ("plain.mp4", ["-x264-params", "interlaced=1:bframes=2"]),
        ("plain.mp4", ["-pix_fmt", "yuv444p", "-x264-params", "cqm=jvt"]),
        ("plain.mp4", ["-pix_fmt", "yuv420p10le"]),
        ("plain.mp4", ["-pix_fmt", "gray"]),
        ("plain-hevc.mp4", ["-x265-params", "temporal-layers=3:bframes=4:b-adapt=0:log-level=none"]),
        ("plain-hevc.mp4", ["-pix_fmt", "yuv444p12le", "-x265-params", "scaling-list=default:log-level=none"]),
    ],
)
@pytest.mark.parametrize("margin", [0, 16])
def test_cropping_is_found_in_sets_of_all_kinds(tmp_path: Path, name: str, options: list[str], margin: int) -> None:
    codec = "hevc" if "hevc" in name else "h264"
    path = made(tmp_path / name, *options)
    if margin:
        path = changed(path, "-bsf:v", f"{codec}_metadata=crop_top={margin}")
    assert problem_of(path) == (CROPPED if margin else None)


def test_containers_that_crop_are_not(tmp_path: Path) -> None:
    aperture = struct.pack(">IIIIIiIiI", 0x636C6170, 80, 1, 60, 1, 0, 1, 0, 1)
    path = with_clap(made(tmp_path / "plain.mp4"), struct.pack(">I", 40) + aperture)
    assert problem_of(path) == CROPPED


@pytest.mark.parametrize("change", ["rotate=90", "flip=vertical", "flip=horizontal"])
def test_streams_that_turn_are_not(tmp_path: Path, change: str) -> None:
    path = changed(made(tmp_path / "plain.ts"), "-bsf:v", f"h264_metadata=display_orientation=insert:{change}")
    assert problem_of(path) == TURNED


def changing(folder: Path, change: str, suffix: str = ".ts") -> Path:
    """Ten pictures, and ten more with changed metadata; ".mp4" is decoded ahead, ".ts" packet by packet."""
    first = made(folder / "plain.ts")
    second = changed(first, "-bsf:v", f"h264_metadata={change}", "-output_ts_offset", "0.4")
    path = folder / "both.ts"
    path.write_bytes(first.read_bytes() + second.read_bytes())
    if suffix != ".ts":
        ffmpeg("-i", str(path), "-c", "copy", str(path.with_suffix(suffix)))
    return path.with_suffix(suffix)


@pytest.mark.parametrize("suffix", [".ts", ".mp4", ".mkv"])
@pytest.mark.parametrize(
    ("change", "size"),
    [("display_orientation=insert:rotate=90", (64, 96)), ("crop_left=16", (80, 64)), ("crop_top=8", (96, 56))],
)
def test_what_changes_in_the_middle_goes_on_on_the_cpu(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    change: str,
    size: tuple[int, int],
    suffix: str,
) -> None:
    path = changing(tmp_path, change, suffix)
    assert vouches(path) is (suffix == ".mp4")
    opened = open_source(str(path), SETTINGS)
    with caplog.at_level(logging.WARNING, "foveate"):
        source = on_device(opened, str(path), SETTINGS)
        frames = list(source)
        source.close()
    _, expected = read(path)
    assert [frame.time for frame in frames] == pytest.approx([frame.time for frame in expected])
    assert [isinstance(frame, Frame) for frame in frames] == [False] * 10 + [True] * 10
    assert {(frame.width, frame.height) for frame in frames[10:]} == {size}
    for frame, other in zip(frames[10:], expected[10:], strict=True):
        assert np.array_equal(frame.luma, other.luma)
    (told,) = caplog.messages
    assert "decoded on the CPU from 0.4 s on" in told
    assert source.damage.messages == []


@pytest.mark.parametrize("suffix", [".ts", ".mp4", ".mkv"])
@pytest.mark.parametrize("chosen", [{"every": 3}, {"start": 0.52}, {"start": 0.2, "every": 7}])
def test_so_does_what_is_chosen_of_it(tmp_path: Path, suffix: str, chosen: dict[str, Any]) -> None:
    path, settings = changing(tmp_path, "display_orientation=insert:rotate=90", suffix), SourceSettings(**chosen)
    expected = open_source(str(path), settings)
    told = [(frame.index, frame.time, frame.luma.copy()) for frame in expected]
    expected.close()
    source = on_device(open_source(str(path), settings), str(path), settings)
    frames = list(source)
    source.close()
    assert [frame.index for frame in frames] == [index for index, *_ in told]
    assert [frame.time for frame in frames] == pytest.approx([seconds for _, seconds, _ in told])
    for frame, (index, _, luma) in zip(frames, told, strict=True):
        assert isinstance(frame, Frame) is (index >= 10)
        assert (frame.height, frame.width) == luma.shape
        assert not isinstance(frame, Frame) or np.array_equal(frame.luma, luma)


@pytest.mark.gpu
@pytest.mark.parametrize("suffix", [".ts", ".mp4"])
@pytest.mark.parametrize("change", ["display_orientation=insert:rotate=90", "crop_left=16", "crop_top=8"])
def test_the_engine_takes_frames_from_both(tmp_path: Path, change: str, suffix: str) -> None:
    path = changing(tmp_path, change, suffix)
    found = []
    for engine in ("cpu", "cuda"):
        with open_stream(str(path), engine=engine, allocation={"memory": "stream"}) as stream:
            found.append([(each.width, each.height, round(each.time, 3)) for each in stream])
    assert found[0] == found[1]
    assert len(found[0]) == 20
    assert len({each[:2] for each in found[0]}) == 2


def escaped(unit: bytes) -> bytes:
    """With a 3 wherever two zeros would be followed by one of 0 to 3 (ITU-T H.264, 7.4.1)."""
    out = bytearray()
    for byte in unit:
        if out[-2:] == b"\0\0" and byte <= 3:
            out.append(3)
        out.append(byte)
    return bytes(out)


def orientation(cancel: int, flips: int, angle: int, period: int = 1) -> bytes:
    """A display orientation, behind another message (ITU-T H.264, 7.3.2.3.1 and D.1.27)."""
    bits = cancel << 23 | flips << 21 | angle << 5 | period << 4
    return b"\6" + bytes([5, 17]) + bytes(16) + b"x" + bytes([47, 3]) + bits.to_bytes(3, "big") + b"\x80"


@pytest.mark.parametrize(
    ("cancel", "flips", "angle", "turns"),
    [(0, 0, 0, False), (0, 1, 0, True), (0, 2, 0, True), (0, 0, 1 << 14, True), (0, 0, 1, True), (1, 3, 77, False)],
)
def test_which_display_orientations_turn(cancel: int, flips: int, angle: int, turns: bool) -> None:
    data = b"\0\0\0\1\x09\xf0\0\0\0\1" + escaped(orientation(cancel, flips, angle)) + b"\0\0\1\x65" + bytes(8)
    assert GeometryWatch("h264").problem(data) == (TURNED if turns else None)


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\1", b"\0\0\1\6", b"\0\0\1\6\x2f", b"\0\0\1\6" + b"\xff" * 9, b"\0\0\1\x67"]
)
def test_what_is_cut_asks_for_nothing(data: bytes) -> None:
    assert GeometryWatch("h264").problem(data) is None
    assert GeometryWatch("hevc").problem(data) is None
    assert GeometryWatch("vp9").problem(data) is None


def test_units_before_the_first_slice() -> None:
    data = b"\0\0\0\1\x09\x10\0\0\1\x67\1\2\0\0\0\1\x65\x88\0\0\1\x06\5"
    assert list(leading_units("h264", data)) == [(9, b"\x09\x10"), (7, b"\x67\1\2")]
    assert list(leading_units("hevc", b"\0\0\1\x42\1\7\0\0\1\x26\1")) == [(33, b"\x42\1\7")]
