"""RTSP: pictures come as soon as their last packet does, and whole."""

import random
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from functools import cache
from itertools import chain, count, pairwise, repeat
from threading import Thread, Timer
from typing import Any, Literal

import av
import pytest
from av.packet import Packet

from foveate.bench.speed.rtsp_camera import RATE, TICKS, Camera, Footage
from foveate.pipeline.live.feed import LiveFeed
from foveate.pipeline.live.rtp_parts import part_of
from foveate.pipeline.live.rtp_pictures import pictures
from foveate.pipeline.live.target import target_of
from foveate.pipeline.settings import LiveSettings, SourceSettings
from foveate.pipeline.stream import Stream, open_stream

COUNT = 200
X264 = {"preset": "ultrafast", "g": str(RATE)}
X265 = {"preset": "ultrafast", "x265-params": f"bframes=0:keyint={RATE}:log-level=none"}
PATIENT = LiveSettings(policy="every", stall_timeout=20.0, connect_timeout=20.0)
STREAMS: dict[str, tuple[str, Mapping[str, str]]] = {
    "h264": ("libx264", X264 | {"bf": "0"}),
    "h264 of four slices": ("libx264", X264 | {"bf": "0", "x264-params": "slices=4"}),
    "h264 with delimiters": ("libx264", X264 | {"bf": "0", "aud": "1"}),
    "h264 with B-frames": ("libx264", X264 | {"preset": "veryfast", "bf": "3"}),
    "h264 refreshed in columns": ("libx264", X264 | {"bf": "0", "x264-params": "intra-refresh=1"}),
    "h264 interlaced": ("libx264", X264 | {"bf": "0", "flags": "+ildct+ilme", "x264-params": "tff=1"}),
    "h264 in slices of a packet": ("libx264", X264 | {"bf": "0", "x264-params": "slice-max-size=900"}),
    "hevc": ("libx265", X265),
    "hevc with B-frames": ("libx265", X265 | {"x265-params": f"bframes=3:keyint={RATE}:log-level=none"}),
    "hevc of four slices": (
        "libx265",
        X265 | {"x265-params": f"slices=4:bframes=0:keyint={RATE}:aud=1:log-level=none"},
    ),
    "mpeg4": ("mpeg4", {"g": str(RATE), "b": "3000k"}),
    "mjpeg": ("mjpeg", {"huffman": "default", "q": "8"}),
}


@cache
def footage(name: str, in_band: bool = True) -> Footage:
    encoder, options = STREAMS[name]
    return Footage(encoder, COUNT, options, in_band)


@pytest.mark.parametrize("name", STREAMS)
def test_all_pictures_come_with_their_times(name: str) -> None:
    """As the encoder's own output is decoded; the timestamps of 32 bits begin again at 0 meanwhile."""
    sent = footage(name)
    with Camera(sent) as camera, sending(camera, sent.packets), closing(feed(camera)) as read:
        frames = [frame for packet in read.packets() if packet.size for frame in read.decoder.decode(packet)]
        frames += read.decoder.decode(None)
    assert [frame.pts for frame in frames] == [number * TICKS for number in range(COUNT)]
    if sent.encoder in ("libx264", "libx265"):  # decoding is exact
        assert list(map(checksum, frames)) == decoded(sent)
        assert read.average_rate == RATE


def test_parameter_sets_that_only_the_description_has() -> None:
    sent = footage("h264", in_band=False)
    with Camera(sent) as camera, sending(camera, sent.packets), closing(feed(camera)) as read:
        frames = [frame for packet in read.packets() if packet.size for frame in read.decoder.decode(packet)]
    assert len(frames) == COUNT


@pytest.mark.parametrize("name", ["h264", "h264 of four slices", "hevc"])
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_tokens_come_before_the_next_picture_is_sent(name: str, transport: Literal["tcp", "udp"]) -> None:
    check_tokens_at_once(footage(name), "cpu", transport)


def check_tokens_at_once(sent: Footage, engine: Literal["cpu", "cuda"], transport: Literal["tcp", "udp"]) -> None:
    """The first pictures may come when the next one begins: how a picture ends must first be learnt."""
    opening, known = 20, COUNT - 60
    live = PATIENT.model_copy(update={"transport": transport})
    with (
        Camera(sent) as camera,
        sending(camera, sent.packets[:opening], hang_up=False) as beginning,
        open_stream(camera.address, budget=40, engine=engine, live=live) as stream,
        limited(stream),
    ):
        assert stream.info.decoded_on_cpu is None
        beginning.join()
        latest = -1
        for number in range(opening, COUNT):
            camera.send(sent.packets[number])
            while latest < (number if number > known else number - 1):
                latest = next(stream).index
        assert stream.damage.frames == 0


@contextmanager
def limited(stream: Stream) -> Iterator[None]:
    """Cancels a stream that waits for what does not come."""
    timer = Timer(100, stream.cancel)
    timer.start()
    yield
    timer.cancel()


@pytest.mark.parametrize("name", ["h264", "h264 of four slices", "hevc", "hevc with B-frames"])
def test_whole_pictures_are_joined_where_packets_are_lost(name: str) -> None:
    sent = footage(name)
    chance = random.Random(3)
    came = [[packet for packet in packets if chance.random() > 0.02] for packets in sent.packets]
    whole = {data for data, every, some in zip(sent.coded, sent.packets, came, strict=True) if len(every) == len(some)}
    with Camera(sent) as camera, sending(camera, came), closing(feed(camera)) as read:
        got = [units(bytes(packet)) for packet in read.packets() if packet.size]
    expected = set(map(units, map(bytes, whole)))
    followed = len(expected & set(got))
    assert 60 < len(expected) < COUNT
    assert followed > 0.9 * len(expected)  # others have what is left of the next one at their end


def parts(name: str, sizes: Callable[[int], Iterable[int]], count: int = COUNT) -> Iterator[tuple[int, Packet]]:
    """What FFmpeg hands out where a sender cuts each unit of picture k into fragments of sizes(k)."""
    sent = footage(name)
    for number, data in enumerate(sent.coded[:count]):
        for unit in units(data):
            head, rest, size = b"\0\0\0\1", unit, iter(sizes(number))
            while rest:
                cut = next(size)
                yield number, part(head + rest[:cut], number * TICKS)
                head, rest = b"", rest[cut:]


def joined(name: str, sizes: Callable[[int], Iterable[int]]) -> tuple[list[tuple[bytes, ...]], int]:
    """The units of each picture, and how many pictures were there before the next one began."""
    place, at_once, got = 0, 0, []

    def pulled() -> Iterator[Packet]:
        nonlocal place
        for place, packet in parts(name, sizes):  # noqa: B007
            yield packet

    for picture in pictures("hevc" if name.startswith("hevc") else "h264", pulled()):
        at_once += picture.pts == place * TICKS
        got.append(units(bytes(picture)))
    return got, at_once


def test_fragments_of_equal_size_tell_the_end() -> None:
    got, at_once = joined("h264", lambda _: repeat(1200))
    assert got == [units(data) for data in footage("h264").coded]
    assert at_once >= COUNT - 105


def test_fragments_of_all_sizes_do_not() -> None:
    """As where a sender cuts a unit into equal shares."""
    chance = random.Random(1)
    got, _ = joined("h264", lambda _: iter(lambda: chance.randrange(100, 1200), None))
    assert got == [units(data) for data in footage("h264").coded]


@pytest.mark.parametrize("small", [300, 1199])
def test_a_sender_that_changes_costs_one_picture(small: int) -> None:
    """And from then on a picture is handed out when the next one begins."""
    got, at_once = joined("h264", lambda number: repeat(1200 if number < 150 else small))
    expected = [units(data) for data in footage("h264").coded]
    assert sum(a != b for a, b in zip(got, expected, strict=True)) <= 1
    assert got[:150] == expected[:150]
    assert at_once < 60


def test_slices_with_timestamps_of_their_own() -> None:
    """As of servers that stamp each unit when it is read: whole, but never early."""
    stamps = count()

    def stamped() -> Iterator[Packet]:
        for _, packet in parts("h264 of four slices", lambda _: repeat(1200)):
            packet.pts = next(stamps)
            yield packet

    got = [units(bytes(picture)) for picture in pictures("h264", stamped())]
    assert got == [units(data) for data in footage("h264 of four slices").coded]


def test_what_comes_behind_the_last_slice_is_not_lost() -> None:
    """Filler of a constant rate, with the timestamp of the picture that is handed out already."""
    filler = b"\0\0\0\1\x0c" + b"\xff" * 20 + b"\x80"

    def filled() -> Iterator[Packet]:
        for (number, packet), (following, _) in pairwise(chain(parts("h264", lambda _: repeat(1200)), [(-1, None)])):
            yield packet
            if following != number:
                yield part(filler, number * TICKS)

    got = [bytes(picture) for picture in pictures("h264", filled())]
    assert len(got) == COUNT
    assert b"".join(got) == b"".join(data + filler for data in map(restarted, footage("h264").coded))[: -len(filler)]


@pytest.mark.parametrize("codec", ["h264", "mpeg4"])
def test_what_has_no_end_does_not_grow(codec: str) -> None:
    """Nothing begins in it, and its timestamp stays."""
    got = list(pictures(codec, (part(bytes(1 << 20), 0) for _ in range(100))))
    assert [packet.size >> 20 for packet in got] == [33, 33, 33, 1]


def test_recovery_points_and_first_slices() -> None:
    recovery = b"\0\0\0\1\x06" + bytes([5, 2, 1, 1]) + bytes([6, 1, 0x90, 0x80])
    found = part_of("h264", recovery + b"\0\0\0\1\x41\x24\xff")
    assert found is not None
    assert (found.keyframe, found.leads, found.slices, found.place, found.whole) == (True, True, 1, 3, True)
    found = part_of("hevc", b"\0\0\0\1\x26\x01\x20\xff")
    assert found is not None
    assert (found.keyframe, found.slices, found.ends_in_slice) == (True, 1, True)
    assert found.place != 0
    assert part_of("hevc", b"\x26\x01\x20\xff") is None


def part(data: bytes, stamp: int) -> Packet:
    packet = Packet(data)
    packet.pts, packet.time_base = stamp, Fraction(1, 90_000)
    return packet


def units(data: bytes) -> tuple[bytes, ...]:
    return tuple(re.split(b"\0{2,3}\1", data)[1:])


def restarted(data: bytes) -> bytes:
    """With start codes of four bytes."""
    return b"".join(b"\0\0\0\1" + unit for unit in units(data))


@contextmanager
def sending(camera: Camera, pictures: Sequence[Sequence[bytes]], hang_up: bool = True) -> Iterator[Thread]:
    """Sends the packets of some pictures, once there is a connection; then it ends."""

    def send() -> None:
        assert camera.playing.wait(20)
        for packets in pictures:
            camera.send(packets)
            time.sleep(0.002)  # so that no socket's buffer overflows
        if hang_up:
            camera.hang_up()

    thread = Thread(target=send)
    thread.start()
    yield thread
    thread.join()


def feed(camera: Camera) -> LiveFeed:
    return LiveFeed(target_of(camera.address, PATIENT), PATIENT, SourceSettings())


def decoded(sent: Footage) -> list[int]:
    """Checksums of the pictures, from the encoder's own output."""
    context = av.CodecContext.create({"libx264": "h264", "libx265": "hevc"}[sent.encoder], "r")
    frames = [frame for data in sent.coded for frame in context.decode(Packet(data))] + context.decode(None)
    return [checksum(frame) for frame in frames]


def checksum(frame: Any) -> int:
    return zlib.crc32(frame.to_ndarray().tobytes())
