"""Which files are decoded ahead, and how decoding goes on where that ends early.

PyNvVideoCodec needs a driver to be imported. In its place stands one that tells of a file what PyAV tells of it; the
real one decodes on a GPU.
"""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest

from foveate.cuda.decode import source as under_test
from foveate.cuda.decode.ahead import vouched
from foveate.cuda.decode.packets import packets
from foveate.cuda.decode.pictures import Picture
from foveate.cuda.decode.source import DeviceSource, on_device
from foveate.cuda.driver.device import Device
from foveate.pipeline.frames import Colour, Damage
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.container import ContainerFeed
from tests.cuda.test_formats import LARGE, PICTURES, joined, piece

FRAMES = 30
WIDTH, HEIGHT = 96, 64


class Demuxer:
    """What PyNvVideoCodec's demultiplexer tells of a file."""

    def __init__(self, filename: str) -> None:
        with av.open(filename) as container:
            stream = container.streams.video[0]
            self.index, self.base = stream.index, stream.time_base or Fraction(1)

    def GetVideoStreamId(self) -> int:  # noqa: N802
        return self.index

    def GetTimebaseNum(self) -> int:  # noqa: N802
        return self.base.numerator

    def GetTimebaseDen(self) -> int:  # noqa: N802
        return self.base.denominator


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    own_error = type("PyNvVCException", (Exception,), {})
    stand_in = SimpleNamespace(CreateDemuxer=Demuxer, PacketData=SimpleNamespace, PyNvVCException=own_error)
    monkeypatch.setitem(sys.modules, "PyNvVideoCodec", stand_in)
    return stand_in


def encode(path: Path, options: dict[str, str], container_options: dict[str, str] | None = None) -> Path:
    with av.open(str(path), "w", options=container_options or {}) as out:
        stream = out.add_stream("libx264", rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for index in range(FRAMES):
            picture = np.full((HEIGHT, WIDTH, 3), 8 * index % 256, np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode(None))
    return path


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """With B-frames, so that packets are not in the order of their times, and a keyframe every 10 frames."""
    return encode(tmp_path / "clip.mp4", {"bf": "2", "g": "10"})


def remuxed(source: Path, target: Path, shift: float = 0.0, late: float = 0.0) -> Path:
    """The same packets, ``shift`` seconds earlier, and from the 20th on ``late`` seconds later."""
    with av.open(str(source)) as container, av.open(str(target), "w") as out:
        template = container.streams.video[0]
        stream = out.add_stream_from_template(template)
        ticks = 1 / (template.time_base or Fraction(1))
        for number, packet in enumerate(container.demux(template)):
            if packet.size and packet.pts is not None and packet.dts is not None:
                change = round((late * (number >= 20) - shift) * ticks)
                packet.pts, packet.dts, packet.stream = packet.pts + change, packet.dts + change, stream
                out.mux(packet)
    return target


def vouches(path: Path) -> bool:
    feed = ContainerFeed(path, SourceSettings())
    try:
        return vouched(feed)
    finally:
        feed.close()


def test_a_whole_indexed_file_is_vouched_for(library: Any, clip: Path) -> None:
    assert vouches(clip)


def test_pictures_not_to_be_shown_are_not(library: Any, clip: Path, tmp_path: Path) -> None:
    assert not vouches(remuxed(clip, tmp_path / "late.mp4", shift=12 / 25))


def test_a_picture_that_stands_for_long_is_too(library: Any, clip: Path, tmp_path: Path) -> None:
    assert vouches(remuxed(clip, tmp_path / "waits.mp4", late=12.0))


@pytest.mark.parametrize(
    ("name", "options"),
    [("a.mkv", {}), ("a.ts", {}), ("fragments.mp4", {"movflags": "frag_keyframe+empty_moov"})],
)
def test_what_has_no_whole_index_is_not(library: Any, tmp_path: Path, name: str, options: dict[str, str]) -> None:
    assert not vouches(encode(tmp_path / name, {"bf": "2", "g": "8"}, options))


def test_a_file_cut_short_is_not(library: Any, tmp_path: Path) -> None:
    whole = encode(tmp_path / "whole.mp4", {"bf": "2"}, {"movflags": "faststart"})
    assert vouches(whole)
    short = tmp_path / "short.mp4"
    short.write_bytes(whole.read_bytes()[:-600])
    assert not vouches(short)


@pytest.mark.parametrize(("name", "told"), [("GetTimebaseDen", 1000), ("GetVideoStreamId", 5)])
def test_another_stream_or_unit_of_time_is_not(
    library: Any, clip: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: int
) -> None:
    monkeypatch.setattr(Demuxer, name, lambda _: told)
    assert not vouches(clip)


def test_what_the_library_refuses_is_not(library: Any, clip: Path) -> None:
    def refuse(filename: str) -> None:
        raise RuntimeError(f"{filename}: no")

    library.CreateDemuxer = refuse
    assert not vouches(clip)


def times(path: Path) -> list[int]:
    with av.open(str(path)) as container:
        return sorted(packet.pts for packet in container.demux(container.streams.video[0]) if packet.pts is not None)


class Card:
    """What the decoders on the card do, told by times alone."""

    def __init__(self) -> None:
        self.stops_after = FRAMES  # pictures
        self.lost: set[int] = set()  # times of pictures that the hardware cannot decode
        self.refused: dict[int, Exception] = {}  # what is raised at packets of these times
        self.by_packet: list[int] = []  # times that were decoded packet by packet
        self.ahead_of_use = 0  # pictures that were decoded ahead
        self.open = self.made = 0

    def ahead(self, _: Any, feed: ContainerFeed) -> Any:
        found = [pts for pts in times(feed.path) if pts not in self.lost][: self.stops_after]

        def pictures() -> Iterator[Picture]:
            for pts in found:
                self.ahead_of_use += 1
                yield picture(pts)

        return self._decoder(pictures())

    def nvdec(self, *_: Any) -> Any:
        waiting: list[int] = []

        def decode(packet: Any) -> Iterator[Picture]:
            if packet.pts in self.refused and packet.bsl:
                raise self.refused[packet.pts]
            if packet.bsl:
                waiting.append(packet.pts)
                return
            shown = sorted(set(waiting) - self.lost)
            self.by_packet += shown
            yield from map(picture, shown)

        decoder = self._decoder(iter(()))
        decoder.decode = decode
        return decoder

    def _decoder(self, pictures: Iterator[Picture]) -> Any:
        self.open += 1
        self.made += 1

        class Decoder:
            def __iter__(self) -> Iterator[Picture]:
                return pictures

            def close(inner) -> None:  # noqa: N805
                self.open -= 1

        return Decoder()


def picture(pts: int) -> Picture:
    return Picture(pts, WIDTH, HEIGHT, None, HEIGHT)  # type: ignore[arg-type]


@pytest.fixture
def card(library: Any, monkeypatch: pytest.MonkeyPatch) -> Card:
    stand_in = Card()
    device = SimpleNamespace(errors=nullcontext)
    monkeypatch.setattr(under_test, "Device", lambda index: nullcontext(device))
    monkeypatch.setattr(under_test, "Ahead", stand_in.ahead)
    monkeypatch.setattr(under_test, "Nvdec", stand_in.nvdec)
    return stand_in


def decoded(path: Path, card: Card, interlaced: bool = False, **asked: Any) -> tuple[list[float], DeviceSource]:
    """The times of all frames that are looked at, in seconds."""
    settings = SourceSettings(**asked)
    opened = open_source(str(path), settings)
    opened.close()
    info = replace(opened.info, interlaced=interlaced)
    source = DeviceSource(ContainerFeed(path, settings), info, Colour(), settings)
    found = [frame.time for frame in source]
    source.close()
    assert card.open == 0
    return found, source


WHOLE = [index / 25 for index in range(FRAMES)]


def test_nothing_is_decoded_twice_where_all_comes_out(card: Card, clip: Path) -> None:
    found, source = decoded(clip, card)
    assert found == pytest.approx(WHOLE)
    assert card.by_packet == []
    assert source.damage.frames == 0


@pytest.mark.parametrize("stops_after", [0, 1, 17, FRAMES - 1])
def test_where_it_ends_early_decoding_goes_on_packet_by_packet(card: Card, clip: Path, stops_after: int) -> None:
    card.stops_after = stops_after
    found, source = decoded(clip, card)
    assert found == pytest.approx(WHOLE)
    assert source.damage.frames == 0
    assert min(card.by_packet) <= times(clip)[stops_after]
    if stops_after > 10:  # from the last keyframe on, not from the beginning
        assert len(card.by_packet) < FRAMES - 5


@pytest.mark.parametrize("name", ["joined.mp4", "joined.ts"])
@pytest.mark.parametrize(("problem", "made"), [(None, 2), ("too large", 1)])
def test_pictures_of_another_size_come_from_another_decoder_or_from_the_cpu(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, problem: str | None, made: int
) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(under_test, "codec_problem", lambda *format_: asked.append(format_) or problem)
    parts = [piece(tmp_path / "1.ts", "h264", (WIDTH, HEIGHT)), piece(tmp_path / "2.ts", "h264", LARGE)]
    path = joined(tmp_path / name, parts)
    found, source = decoded(path, card)
    assert found == pytest.approx([index / 25 for index in range(2 * PICTURES)])
    assert asked == [("h264", "yuv420p", *LARGE, 0)]
    assert card.made == made
    later = times(path)[PICTURES]
    assert sum(pts >= later for pts in card.by_packet) == PICTURES * (made - 1)
    assert source.damage.frames == 0


def test_decoding_ahead_ends_long_before_a_packet_of_another_format(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which PyNvVideoCodec reaches before its picture is asked for, and ends the process at."""
    monkeypatch.setattr(under_test, "codec_problem", lambda *_: None)
    parts = [piece(tmp_path / "1.ts", "h264", (WIDTH, HEIGHT), pictures=100), piece(tmp_path / "2.ts", "h264", LARGE)]
    path = joined(tmp_path / "joined.mp4", parts)
    found, _ = decoded(path, card)
    assert found == pytest.approx([index / 25 for index in range(100 + PICTURES)])
    assert 30 <= card.ahead_of_use <= 100 - 60
    assert card.made == 3


def test_pictures_that_never_come_out_are_damage(card: Card, clip: Path) -> None:
    card.lost = set(times(clip)[12:14])
    found, source = decoded(clip, card)
    assert found == pytest.approx(WHOLE[:12] + WHOLE[14:])
    assert source.damage.frames == 2
    assert source.damage.messages == ["pictures could not be decoded"]


def test_a_packet_without_a_picture_is_damage_and_the_rest_is_decoded(card: Card, clip: Path) -> None:
    """Decoding ahead ends before it; PyAV tells what it is, and goes on behind it."""
    with av.open(str(clip)) as container:
        stream = container.streams.video[0]
        entry = stream.index_entries[11]
        broken = [packet.pts for packet in container.demux(stream) if packet.size][11]
    content = bytearray(clip.read_bytes())
    content[entry.pos : entry.pos + 4] = b"\x7f\xff\xff\xff"  # a unit longer than its packet
    clip.write_bytes(content)
    at = times(clip).index(broken or 0)
    card.stops_after = at - 1
    found, source = decoded(clip, card)
    assert found == pytest.approx(WHOLE[:at] + WHOLE[at + 1 :])
    assert source.damage.frames == 1
    assert "could not be decoded" in source.damage.messages[0]


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("asked", [{}, {"end": 50.0}], ids=str)
def test_a_packet_that_the_decoder_refuses_costs_its_picture(
    own: bool, asked: dict[str, Any], card: Card, library: Any, clip: Path
) -> None:
    """Whether the exception is of the library or of its bindings."""
    kind = library.PyNvVCException if own else RuntimeError
    card.refused = {times(clip)[12]: kind("HandlePictureDecode :\nError code : 1")}
    card.stops_after = 3
    found, source = decoded(clip, card, **asked)
    assert found == pytest.approx(WHOLE[:12] + WHOLE[13:])
    assert source.damage.frames == 1
    assert source.damage.messages == ["a picture could not be decoded: HandlePictureDecode :"]


def test_a_file_that_is_not_vouched_for_is_decoded_packet_by_packet(card: Card, clip: Path, tmp_path: Path) -> None:
    """Its first two pictures are decoded, behind a keyframe, but not shown."""
    found, source = decoded(remuxed(clip, tmp_path / "late.mp4", shift=12 / 25), card)
    assert found == pytest.approx(WHOLE[: FRAMES - 12])
    assert len(card.by_packet) == FRAMES - 10
    assert source.damage.frames == 0


@pytest.mark.parametrize(
    ("asked", "wanted", "most"),
    [
        ({"every": 7}, WHOLE[::7], 20),
        ({"fps": 5}, WHOLE[::5], 24),
        ({"start": 0.85, "end": 1.0}, WHOLE[21:25], 8),
        ({"start": -0.2}, WHOLE[25:], 12),
    ],
)
def test_what_is_not_looked_at_is_not_decoded(
    card: Card, clip: Path, asked: dict[str, Any], wanted: list[float], most: int
) -> None:
    found, source = decoded(clip, card, **asked)
    assert found == pytest.approx(wanted)
    assert len(card.by_packet) <= most
    assert card.made == 1  # each group begins with an IDR picture, where the decoder begins anew by itself
    assert source.damage.frames == 0


def test_interlaced_video_is_decoded_through(card: Card, clip: Path) -> None:
    found, _ = decoded(clip, card, interlaced=True, every=7)
    assert found == pytest.approx(WHOLE[::7])
    assert card.by_packet == []  # but ahead


def test_groups_that_lean_on_the_one_before_are_begun_with_a_new_decoder(card: Card, tmp_path: Path) -> None:
    path = tmp_path / "open.mp4"
    with av.open(str(path), "w") as out:
        stream = out.add_stream(
            "libx265", rate=25, options={"x265-params": "keyint=10:min-keyint=10:scenecut=0:log-level=none"}
        )
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for index in range(FRAMES):
            picture = np.full((HEIGHT, WIDTH, 3), 8 * index % 256, np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode(None))
    found, _ = decoded(path, card, every=10)
    assert found == pytest.approx(WHOLE[::10])
    assert card.made == 3
    assert len(card.by_packet) == 3


def test_from_where_the_hardware_cannot_go_on_samples_are_decoded_on_the_host(
    card: Card, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beyond(feed: Any, damage: Any) -> Iterator[Any]:
        for number, coded in enumerate(packets(feed, damage)):
            yield coded._replace(problem="it is to be turned" if number == 9 else None)

    monkeypatch.setattr(under_test, "packets", beyond)
    found, source = decoded(clip, card, every=3)
    assert found == pytest.approx(WHOLE[::3])
    assert 0 < len(card.by_packet) < 10
    assert source.damage.frames == 0


@pytest.mark.gpu
@pytest.mark.parametrize("harm", ["none", "unit", "zeros", "first", "noise"])
def test_the_hardware_shows_what_pyav_shows_of_a_damaged_file(harm: str, tmp_path: Path) -> None:
    path = encode(tmp_path / "clip.mp4", {"bf": "2", "g": "10"})
    damage_file(path, harm)
    settings = SourceSettings()
    opened = open_source(str(path), settings)
    expected = [frame.time for frame in opened]
    opened.close()
    source = on_device(open_source(str(path), settings), str(path), settings)
    assert isinstance(source, DeviceSource), source.info.decoded_on_cpu
    with Device():
        found = [frame.time for frame in source]
        source.close()
    if harm == "none":
        assert found == pytest.approx(expected)
    assert found == sorted(set(found))
    assert len(found) >= len(expected) - 3  # they conceal different pictures
    assert source.damage.frames <= FRAMES - len(found) + 2
    assert (source.damage.frames > 0) == (len(found) < FRAMES)


def damage_file(path: Path, harm: str) -> None:
    content = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        index = [(entry.pos, entry.size) for entry in container.streams.video[0].index_entries]
    position, size = index[0 if harm == "first" else 15]
    if harm == "unit":
        content[position : position + 4] = b"\x7f\xff\xff\xff"
    if harm in ("zeros", "first"):
        content[position + 4 : position + size] = bytes(size - 4)
    if harm == "noise":
        content[position + 5 : position + size] = np.random.default_rng(2).bytes(size - 5)
    path.write_bytes(content)


def transport(path: Path, pid: int, late: float = 0.0) -> Path:
    """A transport stream of the frames, ``late`` seconds later, with a keyframe every 10."""
    options = {"mpegts_start_pid": str(pid), "output_ts_offset": str(late)}
    return encode(path, {"bf": "0", "g": "10", "x264-params": "scenecut=0"}, options)


def test_a_transport_stream_goes_on_under_another_pid(tmp_path: Path, card: Card) -> None:
    parts = transport(tmp_path / "1.ts", 0x100), transport(tmp_path / "2.ts", 0x200, FRAMES / 25)
    whole = tmp_path / "whole.ts"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    found, source = decoded(whole, card)
    assert found == pytest.approx([index / 25 for index in range(2 * FRAMES)])
    assert source.damage == Damage()


def test_a_transport_stream_that_goes_on_as_another_codec_is_decoded_on_the_host_from_there(
    tmp_path: Path, card: Card, caplog: pytest.LogCaptureFixture
) -> None:
    two = tmp_path / "2.ts"
    with av.open(str(two), "w", options={"mpegts_start_pid": "512", "output_ts_offset": str(FRAMES / 25)}) as out:
        stream = out.add_stream("mpeg2video", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for index in range(FRAMES):
            picture = np.full((HEIGHT, WIDTH, 3), 8 * index % 256, np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode(None))
    whole = tmp_path / "whole.ts"
    whole.write_bytes(transport(tmp_path / "1.ts", 0x100).read_bytes() + two.read_bytes())
    found, source = decoded(whole, card)
    assert len(card.by_packet) == FRAMES
    assert len(found) == 2 * FRAMES
    assert found == sorted(found)
    assert source.damage == Damage()
    assert "goes on as mpeg2video" in caplog.text


def test_what_comes_before_the_first_keyframe_is_neither_shown_nor_damage(tmp_path: Path, card: Card) -> None:
    """A decoder that shows broken pictures there, as this one does, is not believed."""
    content = transport(tmp_path / "whole.ts", 0x100).read_bytes()
    joined = tmp_path / "joined.ts"
    joined.write_bytes(content[len(content) // 188 // 5 * 188 :])
    found, source = decoded(joined, card)
    assert found == pytest.approx([index / 25 for index in range(FRAMES - 10)])
    assert source.damage == Damage()
    assert source.info.undecodable_start > 0


def test_a_long_gap_in_a_file_that_is_decoded_ahead_is_no_discontinuity(clip: Path, tmp_path: Path, card: Card) -> None:
    path = remuxed(clip, tmp_path / "waits.mp4", late=12.0)
    opened = open_source(str(path), SourceSettings())
    opened.close()
    source = DeviceSource(ContainerFeed(path, SourceSettings()), opened.info, Colour(), SourceSettings())
    frames = list(source)
    source.close()
    assert not card.by_packet
    assert max(b.time - a.time for a, b in pairwise(frames)) > 12
    assert not any(frame.discontinuity for frame in frames)
