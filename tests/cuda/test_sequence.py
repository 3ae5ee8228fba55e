"""What sequence parameter sets tell, of streams that libx264 and libx265 make."""

from pathlib import Path

import av
import pytest

from foveate.cuda.decode.annex_b import SEQUENCE, leading_units
from foveate.cuda.decode.sequence import Sequence, sequence_of
from tests.pipeline.made_sources import ffmpeg


def told(path: Path, codec: str, *options: str, size: str = "96x64") -> Sequence:
    encode = ["-c:v", {"h264": "libx264", "hevc": "libx265"}[codec], *options]
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=s={size}:r=25", "-frames:v", "5", *encode, str(path))
    with av.open(str(path)) as container:
        packet = next(container.demux(video=0))
        units = list(leading_units(codec, bytes(packet)))
    found = sequence_of(codec, next(unit for kind, unit in units if kind == SEQUENCE[codec]))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "profile", "chroma", "depth"),
    [
        (["-profile:v", "baseline", "-pix_fmt", "yuv420p"], 66, 1, 8),
        (["-profile:v", "main", "-pix_fmt", "yuv420p"], 77, 1, 8),
        (["-profile:v", "high", "-pix_fmt", "yuv420p"], 100, 1, 8),
        (["-pix_fmt", "yuv420p10le"], 110, 1, 10),
        (["-pix_fmt", "yuv444p", "-x264-params", "cqm=jvt"], 244, 3, 8),
        (["-pix_fmt", "yuv420p", "-x264-params", "interlaced=1"], 100, 1, 8),
    ],
)
def test_formats_of_h264(tmp_path: Path, options: list[str], profile: int, chroma: int, depth: int) -> None:
    found = told(tmp_path / "a.h264", "h264", *options)
    assert (found.profile, found.width, found.height, found.chroma, found.depth) == (profile, 96, 64, chroma, depth)
    assert found.cropping == (0, 0, 0, 0)


def test_formats_of_hevc(tmp_path: Path) -> None:
    quiet = ["-x265-params", "log-level=none"]
    found = told(tmp_path / "a.hevc", "hevc", "-pix_fmt", "yuv420p10le", *quiet)
    assert (found.profile, found.width, found.height, found.chroma, found.depth) == (2, 96, 64, 1, 10)


def test_cropping_at_the_right_and_at_the_bottom(tmp_path: Path) -> None:
    """90x50 is coded as 96x64; cropping of 4:2:0 is told in steps of two pixels."""
    found = told(tmp_path / "a.h264", "h264", "-pix_fmt", "yuv420p", size="90x50")
    assert (found.width, found.height, found.cropping, found.crops_at_start) == (96, 64, (0, 3, 0, 7), False)


HRD = "nal-hrd=vbr:vbv-maxrate=500:vbv-bufsize=500:aud=1"
SAR = "sar=200/199:overscan=show:colorprim=bt709:transfer=bt709:colormatrix=bt709:chromaloc=2:fullrange=on"


@pytest.mark.parametrize(
    ("codec", "parameters", "reorders"),
    [
        ("h264", "bframes=0", False),
        ("h264", "bframes=2", True),
        ("h264", f"bframes=0:{HRD}", False),
        ("h264", f"bframes=2:{SAR}:{HRD}", True),
        ("h264", f"bframes=0:{SAR}:{HRD}", False),
        ("hevc", "bframes=0:log-level=none", False),
        ("hevc", "bframes=3:b-adapt=0:log-level=none", True),
        ("hevc", "temporal-layers=3:bframes=4:b-adapt=0:log-level=none", True),
    ],
)
def test_whether_pictures_are_reordered(tmp_path: Path, codec: str, parameters: str, reorders: bool) -> None:
    encoder = {"h264": "-x264-params", "hevc": "-x265-params"}[codec]
    found = told(tmp_path / f"a.{codec}", codec, "-pix_fmt", "yuv420p", encoder, parameters)
    assert found.reorders is reorders


def test_a_baseline_stream_is_not_reordered_whatever_is_left_unsaid() -> None:
    """By hand: profile 66, level 30, set 0, frame_num of 4 bits, order type 0 with 4 bits, 1 reference, no gaps, 6 by 4
    macroblocks, frames alone, no cropping, no usability information."""
    fields = "01000010000000000001111011110100001100010011001"
    content = int(fields.ljust(-(-len(fields) // 8) * 8, "0"), 2).to_bytes(-(-len(fields) // 8), "big")
    assert sequence_of("h264", b"\x67" + content) == Sequence(66, 96, 64, 1, 8, (0, 0, 0, 0), False)
    main = b"\x67" + bytes([77]) + content[1:]
    assert sequence_of("h264", main) == Sequence(77, 96, 64, 1, 8, (0, 0, 0, 0), True)


def test_one_that_is_cut_tells_nothing() -> None:
    assert sequence_of("h264", b"\x67\x42\x00\x1e") is None
    assert sequence_of("hevc", b"\x42\x01") is None
