"""Where streams go on with pictures of another format, told from their packets; and the same frames on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from foveate.cuda.decode.annex_b import AnnexB
from foveate.cuda.decode.formats import RESIZED, FormatWatch
from foveate.cuda.decode.source import DeviceSource, on_device
from foveate.cuda.decode.vp9 import Vp9Headers
from foveate.cuda.driver.device import Device
from foveate.pipeline.frames import Damage
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source

ENCODERS = {"h264": "libx264", "hevc": "libx265", "vp9": "libvpx-vp9"}
PICTURES = 8
SMALL, LARGE = (192, 160), (1280, 192)  # without a tag, of other colour matrices


def piece(
    path: Path, codec: str, size: tuple[int, int] = SMALL, form: str = "yuv420p", pictures: int = PICTURES, **asked: str
) -> Path:
    """A clip of its own, with parameter sets in its packets where the codec has such. ``asked`` of the encoder."""
    rows, columns = np.indices(size[::-1])
    options = {"g": "4"} | asked | ({"x265-params": "log-level=none"} if codec == "hevc" else {})
    with av.open(str(path), "w") as out:
        stream = out.add_stream(ENCODERS[codec], rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = *size, form
        for index in range(pictures):
            picture = np.stack([(rows + 9 * index) % 256, (2 * columns + index) % 256, (rows + columns) % 256], -1)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture.astype(np.uint8), format="rgb24")))
        out.mux(stream.encode(None))
    return path


def joined(path: Path, pieces: list[Path]) -> Path:
    """The packets of all pieces as one stream, which is declared as the first one is."""
    with av.open(str(path), "w") as out:
        stream: Any = None
        start = Fraction(0)
        for each in pieces:
            with av.open(str(each)) as container:
                video, count = container.streams.video[0], 0
                stream = stream or out.add_stream_from_template(video)
                base, first = video.time_base or Fraction(1), None
                for packet in container.demux(video):
                    if packet.dts is None or packet.pts is None:
                        continue
                    first = packet.pts if first is None else first
                    shift = round(start / base) - first
                    packet.pts, packet.dts, packet.stream = packet.pts + shift, packet.dts + shift, stream
                    out.mux(packet)
                    count += 1
            start += Fraction(count, 25)
    return path


def packets_of(path: Path, codec: str) -> Iterator[bytes]:
    with av.open(str(path)) as container:
        extradata = container.streams.video[0].codec_context.extradata or b""
        convert = bytes if codec == "vp9" else AnnexB(codec, extradata).convert
        for packet in container.demux(video=0):
            if packet.size:
                yield convert(bytes(packet))


def suffix(codec: str) -> str:
    return "webm" if codec == "vp9" else "ts"


@pytest.mark.parametrize("codec", list(ENCODERS))
def test_another_size_is_told_at_the_packet_that_brings_it(codec: str, tmp_path: Path) -> None:
    small = list(packets_of(piece(tmp_path / f"1.{suffix(codec)}", codec), codec))
    large = list(packets_of(piece(tmp_path / f"2.{suffix(codec)}", codec, LARGE), codec))
    watch = FormatWatch(codec)
    changes = [number for number, packet in enumerate(small + large + small) if watch.changed(packet)]
    assert changes == [len(small), len(small) + len(large)]
    assert watch.problem is None


@pytest.mark.parametrize("codec", ["h264", "hevc"])
@pytest.mark.parametrize("asked", [{"form": "yuv420p10le"}, {"refs": "5"}])
def test_another_depth_and_another_number_of_references_are_told_too(
    codec: str, asked: dict[str, str], tmp_path: Path
) -> None:
    both = [piece(tmp_path / "1.ts", codec), piece(tmp_path / "2.ts", codec, **asked)]
    watch = FormatWatch(codec)
    assert [watch.changed(packet) for path in both for packet in packets_of(path, codec)].count(True) == 1


class Bits:
    """Writes a header bit by bit."""

    def __init__(self) -> None:
        self._bits = ""

    def add(self, *fields: tuple[int, int]) -> Bits:
        """Each field is a value and its width."""
        self._bits += "".join(f"{value:0{width}b}" for value, width in fields)
        return self

    def done(self) -> bytes:
        bits = self._bits + "0" * (-len(self._bits) % 8)
        return int(bits, 2).to_bytes(len(bits) // 8, "big") + bytes(20)


def key_header(size: tuple[int, int], profile: int = 0, shown: int = 1) -> bytes:
    """By 6.2: marker, profile, no existing frame, key frame, shown, not resilient, sync code, colours, size."""
    bits = Bits().add((2, 2), (profile & 1, 1), (profile >> 1, 1), *([(0, 1)] if profile == 3 else []), (0, 1), (0, 1))
    bits.add((shown, 1), (0, 1), (0x498342, 24), *([(1, 1)] if profile >= 2 else []), (1, 3), (0, 1))
    if profile & 1:
        bits.add((0, 1), (0, 1), (0, 1))  # 4:4:4
    return bits.add((size[0] - 1, 16), (size[1] - 1, 16)).done()


def inter_header(found: int, size: tuple[int, int] | None = None, shown: int = 1, refreshed: int = 1) -> bytes:
    """One that takes its size from its reference number ``found`` (slots 0, 1, 2), or brings its own."""
    bits = Bits().add((2, 2), (0, 2), (0, 1), (1, 1), (shown, 1), (0, 1), *([] if shown else [(0, 1)]), (0, 2))
    bits.add((refreshed, 8), (0, 3), (0, 1), (1, 3), (0, 1), (2, 3), (0, 1))
    if size is None:
        return bits.add((0, found), (1, 1)).done() if found else bits.add((1, 1)).done()
    return bits.add((0, 3), (size[0] - 1, 16), (size[1] - 1, 16)).done()


def superframe(*frames: bytes) -> bytes:
    """By B.2, with sizes of two bytes."""
    marker = bytes([0b11001000 | len(frames) - 1])
    return b"".join(frames) + marker + b"".join(len(frame).to_bytes(2, "little") for frame in frames) + marker


def sizes(packets: list[bytes]) -> list[tuple[int, int] | None]:
    headers = Vp9Headers()
    shown = [headers.shown(packet) for packet in packets]
    return [None if each is None else (each.format.width, each.format.height) for each in shown]


def test_vp9_frames_take_their_size_from_a_reference_or_bring_it() -> None:
    other = inter_header(0, LARGE, refreshed=0b10)
    assert sizes([key_header(SMALL), inter_header(0), other, inter_header(1), inter_header(2)]) == [
        SMALL,
        SMALL,
        LARGE,
        LARGE,
        SMALL,
    ]


def test_vp9_superframes_are_as_large_as_the_frame_that_is_shown() -> None:
    layers = superframe(key_header(SMALL, shown=0), inter_header(0, LARGE))
    assert sizes([layers, superframe(inter_header(0, SMALL, shown=0), inter_header(1))]) == [LARGE, SMALL]


def test_vp9_frames_that_were_kept_and_are_shown_later() -> None:
    existing = Bits().add((2, 2), (0, 2), (1, 1), (1, 3)).done()
    assert sizes([key_header(SMALL), inter_header(0, LARGE, shown=0, refreshed=2), existing]) == [SMALL, None, LARGE]


@pytest.mark.parametrize(("profile", "chroma", "depth"), [(0, 1, 8), (1, 3, 8), (2, 1, 12), (3, 3, 12)])
def test_vp9_profiles(profile: int, chroma: int, depth: int) -> None:
    shown = Vp9Headers().shown(key_header(LARGE, profile))
    assert shown is not None
    told = shown.format
    assert (told.profile, told.width, told.height, told.chroma, told.depth) == (profile, *LARGE, chroma, depth)
    assert shown.keyframe


def test_vp9_that_changes_its_size_without_a_keyframe_is_left_to_the_cpu() -> None:
    watch = FormatWatch("vp9")
    assert not watch.changed(key_header(SMALL))
    assert watch.changed(inter_header(0, LARGE))
    assert watch.problem == RESIZED


@pytest.mark.parametrize("packet", [b"\0", b"\x82", b"\xc0", b"\xc9\0\0\xc9", bytes(9), b"\xff" * 40])
def test_what_is_no_vp9_tells_nothing_or_little(packet: bytes) -> None:
    Vp9Headers().shown(packet)
    assert not FormatWatch("vp9").changed(packet)


@pytest.mark.gpu
@pytest.mark.parametrize("sizes", [[SMALL, LARGE], [LARGE, SMALL], [SMALL, LARGE, SMALL]])
@pytest.mark.parametrize(
    ("codec", "name"), [("h264", "a.ts"), ("h264", "a.mkv"), ("h264", "a.mp4"), ("hevc", "a.ts"), ("vp9", "a.webm")]
)
def test_files_that_change_their_size_are_the_same_on_both_engines(
    codec: str, name: str, sizes: list[tuple[int, int]], tmp_path: Path
) -> None:
    counts = [100] + [PICTURES] * (len(sizes) - 1)
    made = enumerate(zip(sizes, counts, strict=True))
    parts = [piece(tmp_path / f"{n}.{suffix(codec)}", codec, size, pictures=count) for n, (size, count) in made]
    expected, found = both_engines(joined(tmp_path / name, parts))
    assert [size for (size, _), *_ in expected] == [
        size for size, n in zip(sizes, counts, strict=True) for _ in range(n)
    ]
    same(expected, found)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["a.ts", "a.mp4"])
@pytest.mark.parametrize("references", [("1", "12"), ("12", "1")])
def test_files_that_go_on_with_other_numbers_of_references(
    name: str, references: tuple[str, str], tmp_path: Path
) -> None:
    one, other = ({"g": "30", "refs": count} for count in references)
    parts = [
        piece(tmp_path / "1.ts", "h264", pictures=60, **one),
        piece(tmp_path / "2.ts", "h264", pictures=60, **other),
    ]
    same(*both_engines(joined(tmp_path / name, parts)))


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["yuv444p", "yuv422p"])
def test_what_goes_on_in_a_format_that_the_hardware_lacks_goes_on_on_the_cpu(form: str, tmp_path: Path) -> None:
    parts = [piece(tmp_path / "1.ts", "h264"), piece(tmp_path / "2.ts", "h264", form=form)]
    same(*both_engines(joined(tmp_path / "a.ts", parts)))


def both_engines(path: Path) -> tuple[list[Any], list[Any]]:
    """Size and colour, time and planes of each frame, decoded on the CPU and on the card."""
    results: list[list[Any]] = []
    for on_card in (False, True):
        source: Any = open_source(str(path), SourceSettings())
        if on_card:
            source = on_device(source, str(path), SourceSettings())
            assert isinstance(source, DeviceSource), source.info.decoded_on_cpu
        with Device():
            try:
                results.append(
                    [
                        (
                            ((frame.width, frame.height), frame.colour),
                            frame.time,
                            frame.luma.copy(),
                            *(plane.copy() for plane in frame.chroma),
                        )
                        for frame in source
                    ]
                )
            finally:
                source.close()
        assert source.damage == Damage()
    return results[0], results[1]


def same(expected: list[Any], found: list[Any]) -> None:
    assert [kind for kind, *_ in found] == [kind for kind, *_ in expected]
    assert [seconds for _, seconds, *_ in found] == pytest.approx([seconds for _, seconds, *_ in expected])
    for mine, cpu in zip(found, expected, strict=True):
        assert all(map(np.array_equal, mine[2:], cpu[2:]))
