"""Packets in Annex B form, against FFmpeg's own bit stream filters, and by hand."""

import re
from pathlib import Path

import av
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext

from foveate.cuda.decode.annex_b import AnnexB

FILTERS = {"h264": "h264_mp4toannexb", "hevc": "hevc_mp4toannexb"}
SEQUENCE, PICTURE = b"\x67seq", b"\x68pic"
AVC = b"\1\x64\0\x1f\xff" + b"\xe1\0\4" + SEQUENCE + b"\1\0\4" + PICTURE
START = b"\0\0\0\1"


def units(data: bytes) -> list[bytes]:
    """Of a stream with start codes of three or four bytes."""
    return [part for part in re.split(b"\0?\0\0\1", data) if part]


def pictures(parts: list[bytes]) -> list[bytes]:
    """Those that are long: slices, in their order."""
    return [part for part in parts if len(part) > 100 and part[:2] != b"\x06\x05"]


def compare(path: Path) -> int:
    """Check every packet; returns how many there are."""
    with av.open(str(path)) as mine, av.open(str(path)) as theirs:
        stream, other = mine.streams.video[0], theirs.streams.video[0]
        name = stream.codec_context.name
        ours = AnnexB(name, stream.codec_context.extradata or b"")
        reference = BitStreamFilterContext(FILTERS[name], other)
        count = 0
        for packet, expected in zip(mine.demux(stream), theirs.demux(other), strict=True):
            if not packet.size:
                continue
            wanted = b"".join(bytes(part) for part in reference.filter(expected))
            found = units(ours.convert(bytes(packet)))
            # Parameter sets come first; the filter puts them behind notes, which do not depend on them.
            assert sorted(found) == sorted(units(wanted)), count
            assert pictures(found) == pictures(units(wanted)), count
            count += 1
    return count


@pytest.mark.parametrize("clip", ["bunny", "pedestrians", "tree"])
def test_real_clips(clip: str, samples: Path) -> None:
    assert compare(samples / f"{clip}.mp4") > 60


@pytest.mark.parametrize(
    ("codec", "name"), [("libx264", "a.mkv"), ("libx265", "b.mp4"), ("libx264", "c.ts"), ("libx265", "d.mkv")]
)
def test_encoders_and_containers(codec: str, name: str, tmp_path: Path) -> None:
    if codec not in av.codecs_available:
        pytest.skip(f"this PyAV has no encoder {codec}")
    rng = np.random.default_rng(1)
    with av.open(str(tmp_path / name), "w") as out:
        stream = out.add_stream(codec, rate=25)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = 128, 96, "yuv420p", 5
        for _ in range(12):
            picture = rng.integers(0, 256, (12, 16, 3), np.uint8).repeat(8, 0).repeat(8, 1)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode(None))
    assert compare(tmp_path / name) == 12


def test_where_parameter_sets_go() -> None:
    """At the first packet, and where decoding can begin, unless they are there already."""
    stream = AnnexB("h264", AVC)
    sets = START + SEQUENCE + START + PICTURE

    def packet(*parts: bytes) -> bytes:
        return b"".join(len(part).to_bytes(4, "big") + part for part in parts)

    assert stream.convert(packet(b"\x41first")) == sets + START + b"\x41first"
    assert stream.convert(packet(b"\x41more", b"\x06note")) == START + b"\x41more" + START + b"\x06note"
    assert stream.convert(packet(b"\x65entry")) == sets + START + b"\x65entry"
    own = packet(b"\x67own", b"\x68own", b"\x65entry")
    assert stream.convert(own) == START + b"\x67own" + START + b"\x68own" + START + b"\x65entry"
    assert stream.convert(packet(b"", b"\x41x")) == START + b"\x41x"


@pytest.mark.parametrize("packet", [b"\0\0\0\5\x41abc", b"\0\0\0", b"\0\0\0\2\x41a\0"])
def test_lengths_that_do_not_fit(packet: bytes) -> None:
    with pytest.raises(ValueError, match="bytes in a packet of"):
        AnnexB("h264", AVC).convert(packet)


def test_other_configurations() -> None:
    assert AnnexB("h264", b"").convert(b"as it is") == b"as it is"
    assert AnnexB("hevc", START + b"\x42sets").convert(START + b"\x26a") == START + b"\x26a"
    for codec, cut in (("h264", AVC[:12]), ("h264", AVC[:5]), ("hevc", b"\1" + bytes(20))):
        with pytest.raises(ValueError, match="is cut"):
            AnnexB(codec, cut)
