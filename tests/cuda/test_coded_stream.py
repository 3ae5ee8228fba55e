"""Packets of live connections before they go to the hardware: what is dropped, prepended, and begins anew."""

from pathlib import Path

import av
import pytest

from foveate.cuda.decode.annex_b import START, leading_units
from foveate.cuda.decode.coded_stream import CodedStream
from foveate.cuda.decode.geometry import CROPPED
from tests.pipeline.made_sources import ffmpeg

SETS = {"h264": {7, 8}, "hevc": {32, 33, 34}}
ENCODERS = {"h264": "libx264", "hevc": "libx265"}


def coded(path: Path, codec: str, *options: str, size: str = "96x64") -> list[tuple[bytes, bool]]:
    """Ten packets in Annex B form with a keyframe every 5, and whether each is one."""
    quiet = ["-x265-params", "log-level=none"] if codec == "hevc" else []
    encode = ["-c:v", ENCODERS[codec], "-g", "5", "-bf", "0", "-pix_fmt", "yuv420p", *quiet, *options]
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=s={size}:r=25", "-frames:v", "10", *encode, "-f", "mpegts", str(path))
    with av.open(str(path)) as container:
        return [(bytes(packet), packet.is_keyframe) for packet in container.demux(video=0) if packet.size]


def without_sets(codec: str, packet: bytes) -> tuple[bytes, bytes]:
    """A packet without its parameter sets, and these, as a session description tells them."""
    sets = b"".join(START + unit for kind, unit in leading_units(codec, packet) if kind in SETS[codec])
    bare = packet
    for kind, unit in leading_units(codec, packet):
        if kind in SETS[codec]:
            bare = bare.replace(b"\0" + START[1:] + unit, b"").replace(START[1:] + unit, b"")
    assert not {kind for kind, _ in leading_units(codec, bare)} & SETS[codec]
    return bare, sets


def decoded(codec: str, packets: list[bytes]) -> int:
    """How many pictures FFmpeg's decoder makes of packets that bring their own parameter sets."""
    context = av.CodecContext.create(codec, "r")
    frames = [frame for packet in packets for frame in context.decode(av.Packet(packet))]
    return len(frames) + len(context.decode(None))


@pytest.mark.parametrize("codec", ["h264", "hevc"])
def test_packets_before_the_first_keyframe_are_dropped(tmp_path: Path, codec: str) -> None:
    packets = coded(tmp_path / "a.ts", codec)
    stream = CodedStream(codec, b"")
    taken = [stream.take(*packet) for packet in packets[2:]]
    assert [unit is not None for unit in taken] == [False] * 3 + [True] * 5
    units = [unit for unit in taken if unit is not None]
    assert [unit.begins for unit in units] == [True] + [False] * 4
    assert [unit.keyframe for unit in units] == [True] + [False] * 4
    assert decoded(codec, [unit.data for unit in units]) == 5


@pytest.mark.parametrize("codec", ["h264", "hevc"])
def test_sets_of_the_session_description_come_before_each_keyframe(tmp_path: Path, codec: str) -> None:
    packets = coded(tmp_path / "a.ts", codec)
    _, sets = without_sets(codec, packets[0][0])
    stream = CodedStream(codec, sets)
    units = [stream.take(without_sets(codec, data)[0], keyframe) for data, keyframe in packets]
    data = [unit.data for unit in units if unit is not None]
    assert len(data) == 10
    assert [one.startswith(sets) for one in data] == [True] + [False] * 4 + [True] + [False] * 4
    assert decoded(codec, data) == decoded(codec, data[5:]) + 5 == 10


def test_sets_that_come_in_a_packet_of_their_own_count_for_the_next_keyframe(tmp_path: Path) -> None:
    """Not those of the session description, which may be of another size."""
    small, large = coded(tmp_path / "a.ts", "h264"), coded(tmp_path / "b.ts", "h264", size="192x128")
    bare, sets = without_sets("h264", large[0][0])
    stream = CodedStream("h264", without_sets("h264", small[0][0])[1])
    assert stream.take(sets, False) is None
    unit = stream.take(bare, True)
    assert unit is not None
    assert unit.data == sets + bare


def test_a_keyframe_without_any_sets_begins_nothing(tmp_path: Path) -> None:
    data, keyframe = coded(tmp_path / "a.ts", "h264")[0]
    stream = CodedStream("h264", b"")
    assert stream.take(without_sets("h264", data)[0], keyframe) is None
    assert stream.take(data, keyframe) is not None


def test_packets_with_lengths_get_start_codes(tmp_path: Path) -> None:
    """As RTMP brings them."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=96x64:r=25", "-frames:v", "4", "-c:v", "libx264", str(tmp_path / "a.mp4"))
    with av.open(str(tmp_path / "a.mp4")) as container:
        extra = container.streams.video[0].codec_context.extradata or b""
        packets = [(bytes(packet), packet.is_keyframe) for packet in container.demux(video=0) if packet.size]
    stream = CodedStream("h264", extra)
    units = [stream.take(*packet) for packet in packets]
    assert decoded("h264", [unit.data for unit in units if unit]) == 4
    with pytest.raises(ValueError, match="a unit of"):
        stream.take(packets[1][0][:-9], False)


@pytest.mark.parametrize(
    ("options", "size"), [([], "128x64"), (["-profile:v", "baseline"], "96x64"), (["-pix_fmt", "yuv420p10le"], "96x64")]
)
def test_another_format_begins_anew(tmp_path: Path, options: list[str], size: str) -> None:
    first = coded(tmp_path / "a.ts", "h264")
    second = coded(tmp_path / "b.ts", "h264", *options, size=size)
    stream = CodedStream("h264", b"")
    units = [stream.take(*packet) for packet in (*first, *second)]
    assert [number for number, unit in enumerate(units) if unit and unit.begins] == [0, 10]


def test_what_the_hardware_does_not_do_is_told_as_long_as_it_lasts(tmp_path: Path) -> None:
    plain = coded(tmp_path / "a.ts", "h264")
    cropped = coded(tmp_path / "b.ts", "h264", "-bsf:v", "h264_metadata=crop_left=16")
    stream = CodedStream("h264", b"")
    units = [stream.take(*packet) for packet in (*plain, *cropped, *plain)]
    assert [unit and unit.problem for unit in units] == [None] * 10 + [CROPPED] * 10 + [None] * 10


@pytest.mark.parametrize(("frames", "reorders"), [("0", False), ("2", True)])
def test_whether_pictures_may_be_reordered(tmp_path: Path, frames: str, reorders: bool) -> None:
    stream = CodedStream("h264", b"")
    unit = stream.take(*coded(tmp_path / "a.ts", "h264", "-bf", frames)[0])
    assert unit is not None
    assert unit.reorders is reorders


def test_after_an_error_the_next_keyframe_begins(tmp_path: Path) -> None:
    packets = coded(tmp_path / "a.ts", "h264")
    stream = CodedStream("h264", b"")
    assert stream.take(*packets[0])
    stream.begin_anew()
    taken = [stream.take(*packet) for packet in packets[1:]]
    assert [unit is not None and unit.begins for unit in taken] == [False] * 4 + [True] + [False] * 4
    assert taken[0] is None


def test_a_description_that_is_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="configuration of 8 bytes is cut"):
        CodedStream("h264", b"\1\x64\0\x1e\xff\xe1\0\x20")
