"""Whose packets are taken: those of the hardware's library where the index vouches for them, PyAV's elsewhere.

The library needs a driver to be imported. A stand-in reads with PyAV what the real one reads by itself; the real one is
compared with PyAV on a GPU.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest

from foveate.cuda.decode.packets import Coded, packets
from foveate.pipeline.frames import Damage
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.container import ContainerFeed

FRAMES = 30


class PacketData(SimpleNamespace):
    """Attributes of PyNvVideoCodec.PacketData."""


class Demuxer:
    """Gives the packets whose numbers ``library`` lets through; ``marks`` tells that they came from here."""

    def __init__(self, library: Any, filename: str) -> None:
        self._library = library
        self._container = av.open(filename)
        self._stream = self._container.streams.video[0]

    def GetVideoStreamId(self) -> int:  # noqa: N802
        return self._stream.index

    def GetTimebaseNum(self) -> int:  # noqa: N802
        return (self._stream.time_base or Fraction()).numerator

    def GetTimebaseDen(self) -> int:  # noqa: N802
        return (self._stream.time_base or Fraction()).denominator

    def __iter__(self) -> Iterator[PacketData]:
        for number, packet in enumerate(self._container.demux(self._stream)):
            if number == self._library.stops_at or not packet.size:
                break
            self._library.given += 1
            yield PacketData(bsl=packet.size, pts=packet.pts, dts=packet.dts, duration=packet.duration, library=True)
        yield PacketData(bsl=0, pts=0, dts=0, duration=0)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    stand_in = SimpleNamespace(PacketData=PacketData, PyNvVCException=RuntimeError, stops_at=None, given=0)
    stand_in.CreateDemuxer = lambda filename: Demuxer(stand_in, filename)
    monkeypatch.setitem(sys.modules, "PyNvVideoCodec", stand_in)
    return stand_in


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """With B-frames, so that timestamps are out of order."""
    return encode(tmp_path / "clip.mp4", {"bf": "2"})


def encode(path: Path, options: dict[str, str], container_options: dict[str, str] | None = None) -> Path:
    with av.open(str(path), "w", options=container_options or {}) as out:
        stream = out.add_stream("libx264", rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for index in range(FRAMES):
            picture = np.full((64, 96, 3), 8 * index % 256, np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode(None))
    return path


def cut(source: Path, target: Path, begin: float) -> Path:
    """Copied from ``begin`` on: what comes before is kept for decoding, and marked as not to be shown."""
    with av.open(str(source)) as container, av.open(str(target), "w") as out:
        template = container.streams.video[0]
        stream = out.add_stream_from_template(template)
        shift = round(begin / (template.time_base or Fraction(1)))
        for packet in container.demux(template):
            if packet.size and packet.pts is not None and packet.dts is not None:
                packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, stream
                out.mux(packet)
    return target


def read(path: Path, damage: Damage | None = None) -> list[Coded]:
    feed = ContainerFeed(path, SourceSettings())
    try:
        return list(packets(feed, damage or Damage()))
    finally:
        feed.close()


def facts(coded: list[Coded]) -> list[tuple[int, int, bool]]:
    return [(each.ticks, each.duration, each.shown) for each in coded]


def by_pyav(path: Path) -> list[tuple[int, int, bool]]:
    with av.open(str(path)) as container:
        read = [packet for packet in container.demux(container.streams.video[0]) if packet.size]
        return [(packet.pts or 0, packet.duration or 0, not packet.is_discard) for packet in read]


def of_the_library(coded: list[Coded]) -> int:
    return sum(hasattr(each.data, "library") for each in coded)


def test_an_indexed_file_is_read_by_the_library(library: Any, clip: Path) -> None:
    found = read(clip)
    assert of_the_library(found) == FRAMES
    assert facts(found) == by_pyav(clip)


@pytest.mark.parametrize("stops_at", [0, 1, 17, FRAMES - 1])
def test_where_it_stops_early_pyav_goes_on(library: Any, clip: Path, stops_at: int) -> None:
    library.stops_at = stops_at
    found = read(clip)
    assert of_the_library(found) == stops_at
    assert facts(found) == by_pyav(clip)


def test_pictures_not_to_be_shown_are_read_by_pyav(library: Any, clip: Path, tmp_path: Path) -> None:
    late = cut(clip, tmp_path / "late.mp4", 0.4)
    found = read(late)
    assert of_the_library(found) == 0
    assert not all(each.shown for each in found)
    assert facts(found) == by_pyav(late)


@pytest.mark.parametrize(
    ("name", "options"),
    [("a.mkv", {}), ("a.ts", {}), ("fragments.mp4", {"movflags": "frag_keyframe+empty_moov"})],
)
def test_what_has_no_whole_index_is_read_by_pyav(
    library: Any, tmp_path: Path, name: str, options: dict[str, str]
) -> None:
    path = encode(tmp_path / name, {"bf": "2", "g": "8"}, options)
    found = read(path)
    assert library.given == 0
    assert facts(found) == by_pyav(path)


def test_a_file_cut_short_is_read_by_pyav(library: Any, clip: Path, tmp_path: Path) -> None:
    whole = encode(tmp_path / "whole.mp4", {"bf": "2"}, {"movflags": "faststart"}).read_bytes()
    short = tmp_path / "short.mp4"
    short.write_bytes(whole[:-600])
    assert 0 < len(read(short)) < FRAMES
    assert library.given == 0


def test_another_choice_of_stream_or_clock_is_not_trusted(
    library: Any, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Demuxer, "GetTimebaseDen", lambda _: 1000)
    assert of_the_library(read(clip)) == 0
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "PyNvVideoCodec", library)
    monkeypatch.setattr(Demuxer, "GetVideoStreamId", lambda _: 5)
    assert facts(read(clip)) == by_pyav(clip)
    assert library.given == 0


def test_a_file_that_it_refuses_is_read_by_pyav(library: Any, clip: Path) -> None:
    def refuse(filename: str) -> None:
        raise RuntimeError(f"{filename}: no")

    library.CreateDemuxer = refuse
    assert facts(read(clip)) == by_pyav(clip)


def test_a_packet_without_a_picture_is_damage_and_the_rest_is_read(library: Any, clip: Path) -> None:
    """The library ends at it; PyAV tells what it is, and goes on behind it."""
    with av.open(str(clip)) as container:
        entry = container.streams.video[0].index_entries[11]
    content = bytearray(clip.read_bytes())
    content[entry.pos : entry.pos + 4] = b"\x7f\xff\xff\xff"  # a unit longer than its packet
    clip.write_bytes(content)
    library.stops_at = 11
    damage = Damage()
    assert facts(read(clip, damage)) == [each for number, each in enumerate(by_pyav(clip)) if number != 11]
    assert damage.frames == 1
    assert "could not be decoded" in damage.messages[0]


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["b_frames.mp4", "no_b_frames.mp4", "long.mov"])
def test_the_real_library_reads_what_pyav_reads(tmp_path: Path, name: str) -> None:
    options = {"bf": "0"} if name.startswith("no") else {"bf": "3", "g": "12"}
    path = encode(tmp_path / name, options)
    feed = ContainerFeed(path, SourceSettings())
    found, sizes = [], []
    for coded in packets(feed, Damage()):  # each is valid until the next one only
        found.append((coded.ticks, coded.duration, coded.shown))
        head = ctypes.string_at(coded.data.bsl_data, 4)
        sizes.append(coded.data.bsl)
        assert head in (b"\0\0\0\1", b"\0\0\1\t", b"\0\0\1\x06", b"\0\0\1\x67")
    feed.close()
    assert found == by_pyav(path)
    assert min(sizes) > 4
