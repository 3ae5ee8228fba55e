"""Packets that piled up while a decoder was made: which are left out."""

from collections.abc import Generator, Iterator
from fractions import Fraction
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import av
import pytest

from foveate.bench.speed.paced import PacedFeed, camera_clip
from foveate.pipeline.frames import Damage
from foveate.pipeline.live import catching_up
from foveate.pipeline.live.catching_up import CatchingUp
from foveate.pipeline.live.decoding import HostPicture, on_host
from foveate.pipeline.live.feed import LiveFeed
from foveate.pipeline.live.source import LiveSource
from foveate.pipeline.settings import LiveSettings, SourceSettings

RATE = 25
INTERVAL = 50  # packets from keyframe to keyframe


class Clock:
    """A clock that only waiting and working move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(catching_up.time, "monotonic", lambda: self.now)

    def until(self, moment: float) -> None:
        self.now = max(self.now, moment)


class Camera:
    """Sends a packet each 25th of a second, ``length`` in all, whether they are taken or not."""

    may_skip = True
    time_base = Fraction(1, 90_000)

    def __init__(
        self, clock: Clock, length: int, interval: int = INTERVAL, stamped: bool = True, turn: float = 0.0
    ) -> None:
        """``turn``: seconds that pass with each packet, because other threads have their turn."""
        self.passed = 0
        self._clock, self._length, self._interval, self._stamped = clock, length, interval, stamped
        self._turn = turn

    def packets(self) -> Iterator[Any]:
        begin = self._clock.now
        for number in range(self._length):
            packet = av.Packet(bytes([number % 256]) * 2)
            packet.time_base = self.time_base
            packet.pts = packet.dts = number * 90_000 // RATE if self._stamped and number else None
            packet.is_keyframe = number % self._interval == 0
            self._clock.until(begin + number / RATE)
            self._clock.now += self._turn
            yield packet


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def read(
    camera: Camera, clock: Clock, making: float, cost: float = 0.0, may_skip: bool = True
) -> tuple[list[int], list[int]]:
    """Packets decoded, and handed on, by a decoder that is made in ``making`` seconds and takes ``cost`` for each."""
    packets = CatchingUp(camera)  # type: ignore[arg-type]
    decoded, handed = [], []
    for packet in packets:
        clock.now += cost
        if not decoded:
            clock.now += making
            packets.catch_up(may_skip)
        number = bytes(packet)[0]
        decoded.append(number)
        if not packets.leaves_out(packet.pts):
            handed.append(number)
        packets.go_on(may_skip)
    return decoded, handed


def test_nothing_is_left_out_where_a_decoder_is_there_at_once(clock: Clock) -> None:
    camera = Camera(clock, 100)
    assert read(camera, clock, 0.1) == (list(range(100)), list(range(100)))
    assert camera.passed == 0


def test_decoding_begins_at_the_newest_keyframe_and_with_what_is_current(clock: Clock) -> None:
    """After 7 s packets 0 to 175 are there; 176 is waited for, and pictures older than 0.3 s are not handed on."""
    camera = Camera(clock, 250)
    decoded, handed = read(camera, clock, 7.0)
    assert decoded == [0, *range(150, 250)]
    assert handed == list(range(169, 250))
    assert camera.passed == 169


def test_without_a_newer_keyframe_all_is_decoded_and_only_what_is_current_handed_on(clock: Clock) -> None:
    camera = Camera(clock, 250, interval=1000)
    decoded, handed = read(camera, clock, 7.0)
    assert decoded == list(range(250))
    assert handed == list(range(169, 250))
    assert camera.passed == 169


def test_where_later_pictures_need_earlier_ones_all_is_decoded(clock: Clock) -> None:
    camera = Camera(clock, 250)
    decoded, handed = read(camera, clock, 7.0, may_skip=False)
    assert decoded == list(range(250))
    assert handed == list(range(169, 250))


def test_a_slow_decoder_skips_again(clock: Clock) -> None:
    """While it decodes packets 180 to 191, which had piled up, 200 comes, a keyframe."""
    camera = Camera(clock, 250, interval=20)
    decoded, handed = read(camera, clock, 7.6, cost=0.039)
    jumps = [after for before, after in pairwise(decoded) if after != before + 1]
    assert jumps == [180, 200]
    assert len(handed) + camera.passed == 250
    assert handed[-40:] == list(range(210, 250))


def test_a_decoder_that_never_catches_up_gets_every_packet_after_a_while(clock: Clock) -> None:
    camera = Camera(clock, 600, interval=25)
    decoded, handed = read(camera, clock, 7.0, cost=0.08)
    assert decoded[-100:] == [number % 256 for number in range(500, 600)]
    assert handed[-100:] == decoded[-100:]


def test_packets_that_are_there_may_take_time_to_read(clock: Clock) -> None:
    """Each takes 21 ms, more than half of its duration, while other threads have their turn.

    Packets 1 to 175 are there after 7 s. Each is read 19 ms faster than another comes, so one is at most 0.3 s old
    behind 6.7 s / 19 ms = 353 of them, and 350 is the keyframe before it.
    """
    camera = Camera(clock, 500, turn=0.021)
    decoded, handed = read(camera, clock, 7.0)
    assert decoded == [0, *(number % 256 for number in range(350, 500))]
    assert handed == decoded[1:]
    assert camera.passed == 350


def test_a_sender_that_stood_still_is_not_waited_for_longer_than_a_second(clock: Clock) -> None:
    """It sends packet 1 after 5 s, and stamps as if nothing had happened: the clock says that later ones are there."""

    class Standing(Camera):
        def packets(self) -> Iterator[Any]:
            packets = super().packets()
            yield next(packets)
            clock.now += 5.0
            begin = clock.now
            for number, packet in enumerate(packets, 1):
                clock.until(begin + number / RATE)
                yield packet

    when: list[float] = []
    camera = Standing(clock, 250, interval=1000)
    packets = CatchingUp(camera)  # type: ignore[arg-type]
    begin = clock.now
    for number, packet in enumerate(packets):
        if not number:
            clock.now += 0.3
            packets.catch_up(may_skip=True)
        assert not packets.leaves_out(packet.pts) or number < 30
        when.append(clock.now - begin - number / RATE)
        packets.go_on(may_skip=True)
    assert max(when[1:]) <= 5.3 + 1.1
    assert max(when[60:]) <= 5.3 + 0.1


def test_packets_without_timestamps_are_told_by_the_waiting(clock: Clock) -> None:
    camera = Camera(clock, 250, stamped=False)
    decoded, handed = read(camera, clock, 7.0)
    assert decoded == handed == [0, *range(150, 250)]


def test_a_sender_that_does_not_keep_time_loses_no_more_than_can_have_piled_up(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All 40 s are there at once: 1 s may have piled up meanwhile, and 5 s before that."""
    camera = Camera(clock, 1000)
    monkeypatch.setattr(clock, "until", lambda moment: None)
    decoded, _ = read(camera, clock, 1.0)
    assert decoded[:2] == [0, 150]
    assert len(decoded) == 851


def test_where_everything_is_kept(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Camera, "may_skip", False)
    camera = Camera(clock, 250)
    assert read(camera, clock, 7.0) == (list(range(250)), list(range(250)))


def test_what_is_left_out_is_counted_and_shows_in_the_indices(samples: Path, tmp_path: Path) -> None:
    """Here a decoding leaves out three pictures."""
    clip = tmp_path / "camera.ts"
    camera_clip(samples / "tree.mp4", clip, (64, 48), 10, 30)

    def decode(feed: LiveFeed, damage: Damage) -> Generator[HostPicture, None, None]:
        pictures = on_host(feed, damage)
        for _ in range(3):
            next(pictures)
            feed.passed += 1
        yield from pictures

    opened = partial(PacedFeed, clip, None, 0.0)
    live = LiveSettings(policy="every")
    source = LiveSource("rtsp://127.0.0.1/paced", live, SourceSettings(), None, decode, opened)
    try:
        assert [frame.index for frame in islice(source, 7)] == list(range(3, 10))
        status = source.status
    finally:
        source.close()
    assert (status.received, status.dropped, status.skipped) == (10, 0, 3)
