"""Damaged files: what can be decoded comes, what cannot is counted, and good files raise no alarm."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import pytest
from av.packet import Packet
from av.video.stream import VideoStream

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.container import ContainerFeed
from foveate.pipeline.sources.decoding import FrameDecoder
from foveate.pipeline.sources.streams import packets_of
from foveate.pipeline.sources.truncation import missing_bytes
from tests.pipeline.made_sources import ffmpeg


def read(path: Path, settings: SourceSettings | None = None) -> tuple[list[Frame], Damage]:
    source = open_source(str(path), settings or SourceSettings())
    frames = list(source)
    source.close()
    assert len(source.damage.messages) <= 5
    assert all("\n" not in message for message in source.damage.messages)
    return frames, source.damage


@pytest.mark.parametrize(
    ("name", "fewest", "most"),
    [
        ("B3_truncated.mp4", 31, 34),
        ("B3_truncated.mkv", 31, 34),
        ("B3_truncated_fragments.mp4", 31, 34),
        ("B3_truncated.avi", 15, 34),  # an AVI's packets are of very unequal size
        ("B3_truncated.gif", 4, 8),
    ],
)
def test_b3_a_truncated_file_gives_its_decodable_frames(
    cases: Path, name: str, fewest: int, most: int, capfd: pytest.CaptureFixture[str]
) -> None:
    frames, damage = read(cases / name)
    assert fewest <= len(frames) <= most
    assert damage.frames >= 1
    assert any("cut short" in message for message in damage.messages)
    assert capfd.readouterr() == ("", "")


def test_b3_lost_frames_are_counted_where_the_file_tells_how_many_there_were(cases: Path) -> None:
    frames, damage = read(cases / "B3_truncated.mp4")
    assert damage.frames == 60 - len(frames)


def test_stopping_before_the_cut_is_no_damage(cases: Path) -> None:
    source = open_source(str(cases / "B3_truncated.mp4"), SourceSettings(frames=10))
    assert len(list(source)) == 10
    source.close()
    assert source.damage.frames == 0


def garbled(path: Path, folder: Path, numbers: Sequence[int]) -> Path:
    """A copy of an MP4 in which the packets with these numbers, in storage order, hold no valid data."""
    data = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        places = [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]
    for number in numbers:
        start, size = places[number]
        assert start is not None
        data[start + 4 : start + size] = b"\xff" * (size - 4)
    target = folder / "garbled.mp4"
    target.write_bytes(data)
    return target


@pytest.mark.parametrize("number", [5, 30, -5, -3, -2, -1])
def test_one_bad_packet_costs_one_frame_wherever_it_lies(cases: Path, tmp_path: Path, number: int) -> None:
    frames, damage = read(garbled(cases / "base.mp4", tmp_path, [number]))
    assert len(frames) == 59
    assert damage.frames == 1
    assert len(damage.messages) == 1
    assert "could not be decoded" in damage.messages[0]


def test_a_bad_tail(cases: Path, tmp_path: Path) -> None:
    frames, damage = read(garbled(cases / "base.mp4", tmp_path, range(50, 60)))
    assert len(frames) == 50
    assert damage.frames == 10


def test_nothing_decodable_at_all_is_refused(cases: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no picture can be decoded"):
        open_source(str(garbled(cases / "base.mp4", tmp_path, range(60))), SourceSettings())


def test_bad_files_in_a_sequence_are_passed_over(cases: Path) -> None:
    frames, damage = read(cases / "gap/a_%d.png")
    # the files 7 9 10 13 are good, 11 is cut, 12 is empty, and 014 is another pattern's
    assert [frame.time for frame in frames] == pytest.approx([0, 0.04, 0.08, 0.2])
    assert damage.frames == 2


class InterruptedFeed(ContainerFeed):
    """A feed whose demuxer fails after 30 packets."""

    def packets(self) -> Iterator[Packet[VideoStream]]:
        yield from islice(super().packets(), 30)
        raise av.error.InvalidDataError(1094995529, "Invalid data found")


def test_a_demuxer_error_ends_the_stream_and_keeps_all_frames_before_it(cases: Path) -> None:
    feed, damage = InterruptedFeed(cases / "base.mp4", SourceSettings()), Damage()
    assert len(list(FrameDecoder(feed, damage).frames())) == 30
    feed.close()
    assert damage == Damage(1, ["reading stopped: invalid data found"])


@pytest.mark.parametrize("count", [9, 31, 33])
@pytest.mark.parametrize("sampled", [{"every": 4}, {"start": 0.14, "every": 4}, {"end": 50.0}], ids=str)
def test_a_demuxer_error_ends_sampling_as_it_ends_reading(
    count: int, sampled: dict[str, Any], cases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also among the packets that are looked at before it is decided which are decoded. 30 pictures a second."""
    whole = ContainerFeed.packets

    def interrupted(self: ContainerFeed) -> Iterator[Packet[VideoStream]]:
        yield from islice(whole(self), count)
        raise av.error.MemoryError(12, "Cannot allocate memory")

    monkeypatch.setattr(ContainerFeed, "packets", interrupted)
    frames, damage = read(cases / "base.mp4", SourceSettings(**sampled))
    first, step = round(30 * sampled.get("start", 0)), 1 if "end" in sampled else 4
    assert [frame.index for frame in frames] == list(range(first, count, step))
    assert damage.messages[0].startswith("reading stopped: out of memory, or the size of a packet is damaged")


def test_packets_of_a_stream_that_appears_on_the_way_are_passed_over() -> None:
    """As PyAV fails at them: with an IndexError, behind which it goes on."""
    numbers = iter(range(10))

    def demux(_: object) -> Iterator[int]:
        for number in numbers:
            if number in (0, 3, 4, 9):
                raise IndexError("list index out of range")
            yield number

    assert list(packets_of(SimpleNamespace(demux=demux), None)) == [1, 2, 5, 6, 7, 8]  # type: ignore[arg-type]


class CountingFeed(ContainerFeed):
    """A feed that counts its packets, of which one is a keyframe, and none can be decoded."""

    taken = 0
    keyframe = 0

    def packets(self) -> Iterator[Packet[VideoStream]]:
        for number, packet in enumerate(super().packets()):
            packet.is_keyframe = number == self.keyframe
            self.taken += packet.size > 0
            yield packet


@pytest.mark.parametrize(("keyframe", "taken"), [(0, 21), (15, 36), (50, 60)])
def test_a_stream_that_never_decodes_is_given_up_some_packets_after_a_keyframe(
    cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keyframe: int, taken: int
) -> None:
    """However long it takes until the keyframe: decoding could not begin before."""
    monkeypatch.setattr("foveate.pipeline.sources.beginning.PACKET_LIMIT", 20)
    feed = CountingFeed(garbled(cases / "base.mp4", tmp_path, range(60)), SourceSettings())
    feed.keyframe = keyframe
    assert list(FrameDecoder(feed, Damage()).frames()) == []
    assert feed.taken == taken
    feed.close()


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF])
@pytest.mark.parametrize("count", [60, 0x40000000])
def test_an_avi_of_unknown_length_is_no_damage(cases: Path, tmp_path: Path, size: int, count: int) -> None:
    """As FFmpeg and cameras write it to what cannot be rewound: no RIFF size, and a count of pictures that is none."""
    data = bytearray((cases / "base.avi").read_bytes())
    data[4:8] = size.to_bytes(4, "little")
    header = data.find(b"strh") + 8
    data[header + 32 : header + 36] = count.to_bytes(4, "little")
    (tmp_path / "pipe.avi").write_bytes(data)
    source = open_source(str(tmp_path / "pipe.avi"), SourceSettings())
    assert source.info.frames == (60 if count == 60 else None)
    source.close()
    frames, damage = read(tmp_path / "pipe.avi")
    assert (len(frames), damage) == (60, Damage())


@pytest.mark.parametrize(("kind", "lost"), [(b"free", False), (b"udta", False), (b"mdat", True), (b"moof", True)])
def test_a_last_box_that_is_cut_is_damage_where_it_may_hold_pictures(
    cases: Path, tmp_path: Path, kind: bytes, lost: bool
) -> None:
    rest = (4096).to_bytes(4, "big") + kind + bytes(100)
    (tmp_path / "rest.mp4").write_bytes((cases / "base.mp4").read_bytes() + rest)
    frames, damage = read(tmp_path / "rest.mp4")
    assert (len(frames), damage.frames > 0) == (60, lost)


@pytest.mark.parametrize("name", ["base.mp4", "fs.mp4", "frag.mp4", "base.mkv", "base.avi", "a.ts", "I1.gif"])
@pytest.mark.parametrize("rest", [b"written by a camera of ours\n", bytes(5000)], ids=["text", "zeros"])
def test_what_follows_a_whole_video_is_no_damage(cases: Path, tmp_path: Path, name: str, rest: bytes) -> None:
    whole, _ = read(cases / name)
    (tmp_path / name).write_bytes((cases / name).read_bytes() + rest)
    frames, damage = read(tmp_path / name)
    assert (len(frames), damage) == (len(whole), Damage())


def test_good_files_announce_no_missing_bytes(cases: Path) -> None:
    cut = {"B3_truncated.mp4", "B3_truncated.mkv", "B3_truncated_fragments.mp4", "B3_truncated.avi"}
    cut |= {"B3_truncated.gif", "B1_nomoov.mp4"}
    assert {path.name for path in cases.iterdir() if path.is_file() and missing_bytes(path)} == cut


FUZZED = ["fs.mp4", "frag.mp4", "base.mkv", "a.ts", "T4_reordered.avi", "I1.gif", "T3_nopts.h264", "C3_alpha.mov"]


@pytest.mark.parametrize("name", FUZZED)
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_broken_the_times_stay_in_order_and_only_source_errors_rise(
    cases: Path, tmp_path: Path, name: str, seed: int
) -> None:
    chance = random.Random(seed)
    data = bytearray((cases / name).read_bytes())
    if seed % 3 == 0:
        del data[chance.randrange(1, len(data)) :]
    for _ in range((0, 20, 300)[seed % 3]):
        data[chance.randrange(len(data))] = chance.randrange(256)
    target = tmp_path / f"broken{Path(name).suffix}"
    target.write_bytes(data)
    for sampled in ({}, {"every": 3}, {"start": 0.3, "fps": 7}, {"start": -0.5}, {"end": -0.3}):
        try:
            frames, _ = read(target, SourceSettings(**sampled))
        except SourceError:
            continue
        assert all(b.time > a.time for a, b in pairwise(frames))


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts", "a.mpg"])
def test_a_tail_holds_all_pictures_from_a_time_on(tmp_path: Path, name: str) -> None:
    """Transport and program streams have no index, and FFmpeg seeks them by decoding times, to any packet."""
    codec = "mpeg2video" if name == "a.mpg" else "libx264"
    encode = ["-c:v", codec, "-g", "6", "-bf", "2", "-pix_fmt", "yuv420p"]
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=96x64:r=25", "-frames:v", "60", *encode, str(tmp_path / name))
    whole = ContainerFeed(tmp_path / name, SourceSettings())
    times = [packet.pts for packet in whole.packets() if packet.size and packet.pts is not None]
    whole.close()
    for ticks in times:
        tail = whole.tail(ticks)
        assert tail is not None
        found = [(packet.pts or 0, packet.is_keyframe) for packet in tail.packets() if packet.size]
        tail.close()
        first = next(number for number, (_, is_keyframe) in enumerate(found) if is_keyframe)
        assert found[first][0] <= ticks
        assert {pts for pts in times if pts >= ticks} <= {pts for pts, _ in found[first:]}
