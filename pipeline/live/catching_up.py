"""The packets of a live connection, of which old ones are left out: they pile up while its decoder is made."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from av.packet import Packet

from foveate.pipeline.live.feed import LiveFeed

_LATE: Final = 0.25  # seconds that decoding may stand still before anything is left out
_CURRENT: Final = 0.3  # seconds by which a picture may be older than the newest packet
_SHARE: Final = 0.5  # of a packet's duration; one that took less waiting had piled up
_UNTIMED: Final = 0.005  # seconds in place of that share, where packets have no timestamps
_WINDOW: Final = 1.0  # seconds of reading ahead, over which it is seen whether that brings newer packets nearer
_NEARER: Final = 0.25  # seconds in each second of it; where it is less, the sender does not keep time
_PROBED: Final = 5.0  # seconds of packets that FFmpeg may have read to find out what the stream is
_PATIENCE: Final = 10.0  # seconds after which a decoder that is too slow to catch up gets every packet again


class CatchingUp:
    """Iterates over the packets of ``feed``, which counts what is left out. Used by the thread that decodes.

    Nothing is left out before ``catch_up`` is called, nor where the feed keeps everything.
    """

    def __init__(self, feed: LiveFeed) -> None:
        self._feed = feed
        self._source = feed.packets()
        self._pile: deque[Packet[Any]] = deque()  # read ahead
        self._idle = time.monotonic()  # since when decoding reads nothing, by time.monotonic()
        self._known: tuple[float, int | None] | None = None  # when a packet came, by time.monotonic(), and its stamp
        self._waited = 0.0  # seconds for the latest packet that was read ahead
        self._seen: tuple[float, float] | None = None  # while reading ahead: a moment, by the same, and the lag then
        self._begun = 0.0  # when catching up began, by time.monotonic()
        self._behind = False
        self._oldest: float | None = None  # ticks; earlier pictures are too old

    def __iter__(self) -> Iterator[Packet[Any]]:
        """Yield each packet that is to be decoded."""
        late = time.monotonic() - self._idle
        while True:
            piled = bool(self._pile)
            packet = self._pile.popleft() if piled else next(self._source, None)
            if packet is None:
                return
            self._idle = time.monotonic() - late
            if not piled:
                self._known = self._idle, _stamp(packet)
            yield packet
            late = 0.0

    def catch_up(self, may_skip: bool) -> None:
        """Read ahead, where decoding has stood still for long since it got the latest packet.

        ``may_skip``: nothing that is decoded already belongs to later packets, so what comes before the newest keyframe
        can be left out.
        """
        self._begun = time.monotonic()
        late = self._begun - self._idle
        if late >= _LATE and self._feed.may_skip:
            self._look(late, may_skip)

    def go_on(self, may_skip: bool) -> None:
        """Behind each packet: read ahead once more if decoding is still late."""
        if self._pile:
            return
        spent = time.monotonic() - self._begun
        if self._behind and may_skip and spent < _PATIENCE:
            self._look(spent, may_skip)
        else:
            self._behind, self._oldest = False, None

    def leaves_out(self, pts: int | None) -> bool:
        """Whether a decoded picture is too old to be handed on. It is counted then."""
        old = self._oldest is not None and (pts is None or pts < self._oldest)
        self._feed.passed += old
        return old

    def _look(self, late: float, may_skip: bool) -> None:
        """Read what has piled up in ``late`` seconds; pictures of it that are old are not handed on."""
        self._read_ahead(late + _PROBED, may_skip)
        current = _CURRENT / float(self._feed.time_base)
        stamps = [packet.pts for packet in self._pile if packet.pts is not None]
        self._oldest = max(stamps) - current if stamps else None
        self._behind = bool(stamps) and max(stamps) - min(stamps) > current

    def _read_ahead(self, most: float, may_skip: bool) -> None:
        """Read what has piled up, at most so many seconds and those that this takes, and one packet more.

        Threads that take turns at the interpreter make a packet that is there look as if it had been waited for. So the
        stamps must have come as far as the clock has, too.
        """
        first = before = self._seen = None
        begin, tick = time.monotonic(), float(self._feed.time_base)
        while (packet := self._timed()) is not None:
            if packet.is_keyframe and may_skip:
                self._feed.passed += len(self._pile)
                self._pile.clear()
            self._pile.append(packet)
            stamp = _stamp(packet)
            if self._known is not None and self._known[1] is None:  # as of the first packet of a connection
                self._known = self._known[0], stamp
            if self._waited >= self._enough(before, stamp) and not self._newer_are_there(stamp):
                return
            if _apart(first, stamp) * tick > most + time.monotonic() - begin:
                return
            first, before = stamp if first is None else first, stamp

    def _newer_are_there(self, stamp: int | None) -> bool:
        """Whether packets behind one that was waited for must have come already, by the clock."""
        lag, now = self._lag(stamp), time.monotonic()
        since, before = self._seen = self._seen or (now, lag)
        if now - since >= _WINDOW:
            self._seen = now, lag
            if before - lag < _NEARER * (now - since):
                self._known = None
                return False
        return lag > _CURRENT

    def _lag(self, stamp: int | None) -> float:
        """Seconds by which a packet is older than those that come now, if the sender keeps time; 0.0: not known."""
        came, known = self._known or (0.0, None)
        if known is None or stamp is None:
            return 0.0
        return time.monotonic() - came - _apart(known, stamp) * float(self._feed.time_base)

    def _timed(self) -> Packet[Any] | None:
        """The next packet, None at the end; notes how long it was waited for."""
        asked = time.monotonic()
        packet = next(self._source, None)
        self._waited = time.monotonic() - asked
        return packet

    def _enough(self, before: int | None, stamp: int | None) -> float:
        """Seconds of waiting for a packet that had not piled up."""
        if before is None or stamp is None:
            return _UNTIMED
        return _SHARE * _apart(before, stamp) * float(self._feed.time_base)


def _stamp(packet: Packet[Any]) -> int | None:
    """When a packet is to be decoded, in ticks."""
    return packet.pts if packet.dts is None else packet.dts


def _apart(earlier: int | None, later: int | None) -> int:
    """Ticks; 0 where one is not known."""
    return 0 if earlier is None or later is None else later - earlier
