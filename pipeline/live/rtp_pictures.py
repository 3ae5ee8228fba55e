"""The pictures of an RTSP stream, each as soon as its last part is there.

FFmpeg's parser hands out a picture when the next one begins: one frame late. So it is left out (``noparse``), and the
parts are joined here. RTP has a mark at the last part of a picture, but FFmpeg does not tell of it, and some servers
never set it, or set it at each slice. The end is told from what the stream does all the time instead: the number of
slices of a picture, and the size of the fragments, of which only a unit's last one is smaller. A stream must have been
like that for many pictures; until then, and where it is not, a picture ends when the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, cast

from av.packet import Packet
from av.video.stream import VideoStream

from foveate.pipeline.live.rtp_parts import UNITS, Part, part_of

JOINED: Final = frozenset({*UNITS, "mpeg4", "mpeg1video", "mpeg2video", "h261", "h263", "h263p"})
"""Codecs whose pictures come in parts; FFmpeg joins those of others by the mark."""
_LARGEST: Final = 32 << 20  # bytes after which no end of a picture is waited for any more
_PICTURES: Final = 100  # in a row that must have ended as expected
_KEYFRAMES: Final = 2  # of these


def pictures(codec: str, parts: Iterable[Packet[VideoStream]]) -> Iterator[Packet[VideoStream]]:
    """One packet for each picture, of the payloads of RTP packets. ``codec``: one of JOINED."""
    joiner = _Slices(codec) if codec in UNITS else _Stamped()
    for part in parts:
        if part.size:
            yield from joiner.take(part)
    yield from joiner.rest()


class _Picture:
    """What has come of one."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.size = 0  # bytes
        self.pts: int | None = None  # of its first slice
        self.like: Packet[VideoStream] | None = None  # a packet of it
        self.begun = False  # there is a slice
        self.in_slice = True  # its last unit is one, or the beginning of the first one is missing
        self.slices = 0
        self.place = -1  # of its latest slice
        self.keyframe = False
        self.uniform = True  # all its slices have one timestamp
        self.length = 0  # of the latest part
        self.whole = False  # the latest part ends with a unit, whatever its length
        self.fragment: int | None = None  # bytes of the smallest fragment of a slice that another one followed
        self.expected = False  # it seemed to be whole
        self.surprised = False  # and was not

    def ends_before(self, part: Part | None) -> bool:
        """Whether a part belongs to the next picture."""
        if self.size > _LARGEST:
            return True
        if part is None or not self.begun:
            return False
        return part.leads or (part.place is not None and (part.place == 0 or 0 < part.place < self.place))

    def add(self, packet: Packet[VideoStream], data: bytes, part: Part | None) -> None:
        """Append a part. None: a further fragment."""
        continued = self.in_slice and (part is None or part.continues)
        if continued and self.data:
            self.fragment = min(self.length, self.fragment or self.length)
        if continued or (part is not None and part.slices):
            self._slice(packet)
        self.data.append(data)
        self.size += len(data)
        self.like = packet
        self.length, self.whole = len(data), False
        if part is not None:
            self.in_slice, self.length, self.whole = part.ends_in_slice, part.length, part.whole
            self.slices += part.slices
            self.place = self.place if part.place is None else part.place
            self.keyframe |= part.keyframe

    def _slice(self, packet: Packet[VideoStream]) -> None:
        if not self.begun:
            self.pts, self.begun = packet.pts, True
        self.uniform &= packet.pts == self.pts
        self.surprised |= self.expected


class _Ends:
    """Learns from pictures that are whole by what the last part of one can be told."""

    def __init__(self) -> None:
        self._slices = 0
        self._fragment: int | None = None  # bytes of the smallest one that another one followed
        self._right = self._keyframes = 0
        self._failed = False

    @property
    def are_known(self) -> bool:
        """Whether the next picture can be handed out when it seems to be whole."""
        return self._right >= _PICTURES and self._keyframes >= _KEYFRAMES and not self._failed

    def seems_whole(self, picture: _Picture) -> bool:
        """Whether the latest part is likely to be the last."""
        if picture.slices != self._slices or self._fragment is None:
            return False
        return picture.in_slice and picture.uniform and (picture.whole or picture.length < self._fragment)

    def learn(self, picture: _Picture) -> None:
        """Look at a picture behind which the next one has begun."""
        if not picture.uniform:  # a part with the beginning of one is missing
            return
        if picture.slices > self._slices or picture.surprised:
            self._right = self._keyframes = 0
        elif picture.expected:
            self._right += 1
            self._keyframes += picture.keyframe
        if picture.slices >= self._slices:
            self._slices = picture.slices
            if picture.fragment is not None:
                self._fragment = min(picture.fragment, self._fragment or picture.fragment)

    def fail(self) -> None:
        """A picture was handed out that was not whole: hand out none early any more."""
        self._failed = True


class _Slices:
    """Joins the parts of H.264 and HEVC."""

    def __init__(self, codec: str) -> None:
        self._codec = codec
        self._ends = _Ends()
        self._picture = _Picture()
        self._early: tuple[int | None] | None = None  # the timestamp of a picture that was just handed out early

    def take(self, packet: Packet[VideoStream]) -> Iterator[Packet[VideoStream]]:
        """The pictures that are whole with this part."""
        data = bytes(packet)
        part = part_of(self._codec, data)
        if self._is_late(part, packet.pts):
            self._ends.fail()
            return
        if self._picture.ends_before(part):
            self._ends.learn(self._picture)
            yield from self.rest()
        picture = self._picture
        picture.add(packet, data, part)
        if self._ends.seems_whole(picture):
            picture.expected = True
            if self._ends.are_known:
                yield from self.rest()
                self._early = (picture.pts,)

    def rest(self) -> Iterator[Packet[VideoStream]]:
        """What there is of the present picture, which ends with it."""
        picture, self._picture, self._early = self._picture, _Picture(), None
        if picture.like is not None and picture.begun:
            yield _joined(picture.like, picture.data, picture.pts, picture.keyframe)

    def _is_late(self, part: Part | None, pts: int | None) -> bool:
        """Whether a part belongs to the picture before, which was handed out without it."""
        if self._early != (pts,) or self._picture.data:
            return False
        return part is None or part.continues or (part.place is not None and part.place != 0)


class _Stamped:
    """Joins the parts of other codecs: those of a picture have the same timestamp."""

    def __init__(self) -> None:
        self._parts: list[Packet[VideoStream]] = []
        self._size = 0  # bytes of these

    def take(self, packet: Packet[VideoStream]) -> Iterator[Packet[VideoStream]]:
        """As _Slices.take."""
        if self._parts and (packet.pts != self._parts[0].pts or self._size > _LARGEST):
            yield from self.rest()
        self._parts.append(packet)
        self._size += packet.size

    def rest(self) -> Iterator[Packet[VideoStream]]:
        """As _Slices.rest."""
        parts, self._parts, self._size = self._parts, [], 0
        if parts:
            first = parts[0]
            yield _joined(first, [bytes(part) for part in parts], first.pts, first.is_keyframe)


def _joined(like: Packet[VideoStream], data: list[bytes], pts: int | None, keyframe: bool) -> Packet[VideoStream]:
    made = cast("Packet[VideoStream]", Packet(b"".join(data)))
    made.pts, made.time_base, made.is_keyframe = pts, like.time_base, keyframe
    return made
