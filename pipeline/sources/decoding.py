"""Decoding packets to frames, with damage counted and skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain
from typing import Literal, Protocol, runtime_checkable

from av.error import FFmpegError
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage
from foveate.pipeline.sources.beginning import Beginning, is_encrypted
from foveate.pipeline.sources.cropping import Geometry

_MESSAGES_KEPT = 5
Begins = Callable[["Packet[VideoStream]"], bool]
Times = Literal["stream", "unknown", "rate", "setting"]
"""Where times come from: the stream, its declared frame rate, or the rate setting.

``unknown``: from the stream if its first picture has a timestamp; its header does not say."""


class Decoder(Protocol):
    """Makes frames of packets; PyAV's VideoCodecContext is one."""

    @property
    def name(self) -> str: ...

    @property
    def extradata(self) -> bytes | None: ...

    def decode(self, packet: Packet[VideoStream] | None = None, /) -> list[VideoFrame]:
        """The frames that are complete after a packet; without one, those still inside. Raises FFmpegError."""


class Packets(Protocol):
    """Packets and their decoder, as FrameDecoder reads them."""

    @property
    def decoder(self) -> Decoder: ...

    frames: int | None  # how many there should be

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield packets in decoding order. Raises FFmpegError where the stream cannot be read further."""

    def shortfall(self) -> str | None:
        """After the last packet: why there are fewer than there should be, or None."""

    def tail(self, ticks: int) -> Feed | None:
        """A second feed from the last keyframe before a time on, decoding one frame at a time, if it can be."""


class Feed(Packets, Protocol):
    """The packets of one video stream, their decoder, and what is known of both."""

    time_base: Fraction  # seconds per tick of a frame's timestamp
    rate: float | None  # declared frames per second
    average_rate: float | None
    sample_aspect: float
    times: Times
    decode_order: bool  # only decoding timestamps can be trusted
    spliced: bool  # timestamps may start again in the middle, as in a transport stream; else a gap is a gap
    geometry: Geometry  # what the container says, and the decoder does not do

    def close(self) -> None:
        """Release everything. Safe to call twice."""


@runtime_checkable
class Cancellable(Protocol):
    """A feed that may block."""

    def cancel(self) -> None:
        """End every wait, now and later. From any thread, any number of times."""


class FileFeed(Feed, Protocol):
    """A feed that ends, and may be read more than once."""

    @property
    def length(self) -> float | None:
        """Seconds from the first picture to the end of the last one, if the header has it."""

    def obstacle(self, packets: int) -> str | None:
        """Why no picture could be decoded from so many packets, and what to do, if the container shows it."""

    def following(self) -> FileFeed | None:
        """The feed that continues the video after the last packet, if another stream does. Raises SourceError."""

    def again(self) -> SoughtFeed | None:
        """The same from its beginning; None if it cannot be read twice, or its timestamps are unreliable."""


class SoughtFeed(FileFeed, Protocol):
    """A feed in which packets can be skipped."""

    @property
    def decoder(self) -> VideoCodecContext: ...

    def packets_from(self, ticks: int, begins: Begins) -> tuple[int, Iterator[Packet[VideoStream]]]:
        """Packets from the last keyframe before a time on, and how many pictures are before it; all where unknown.

        ``begins``: whether decoding can begin at a packet. Raises FFmpegError.
        """


def record_damage(damage: Damage, message: str, frames: int = 1) -> None:
    """Count lost frames, and keep the message if it is new and among the first few."""
    damage.frames += frames
    if message not in damage.messages and len(damage.messages) < _MESSAGES_KEPT:
        damage.messages.append(message)


def next_feed(feed: FileFeed, damage: Damage) -> FileFeed | None:
    """The feed that continues the video after ``feed``, which is then closed; None at the end. Records damage."""
    try:
        following = feed.following()
    except SourceError as error:
        record_damage(damage, f"what follows in the file cannot be read: {error}")
        return None
    if following is not None:
        feed.close()
    return following


class FrameDecoder:
    """The frames of a feed. Iterated once."""

    def __init__(self, feed: Packets, damage: Damage) -> None:
        self._feed = feed
        self._damage = damage
        self._beginning = Beginning()
        self._pending = 0  # packets whose frame has not come out yet
        self._count = 0
        self._last: int | None = None  # latest timestamp of a frame

    def frames(self) -> Iterator[VideoFrame]:
        """Yield every frame that can be decoded, in presentation order; count the rest as damage."""
        for packet in self._packets():
            if not self._count:
                self._beginning.count(packet)
                if self._beginning.exhausted:
                    break
            self._pending += not packet.is_discard
            yield from self.decode(packet)
        yield from self._drain()
        reason = self._feed.shortfall()
        if reason is not None:
            missing = (self._feed.frames or 0) - self._count - self._damage.frames
            record_damage(self._damage, reason, max(missing, int(self._damage.frames == 0)))

    def skipped(self, first: int | None) -> int:
        """How many pictures could not be shown because they come before the first keyframe; see ``Beginning``."""
        return self._beginning.skipped(first)

    def failure(self, feed: FileFeed) -> str:
        """Why there was no frame of the feed at all, and what to do."""
        return self._beginning.reason(feed.obstacle(self._beginning.packets))

    def _packets(self) -> Iterator[Packet[VideoStream]]:
        """The packets to decode. One marked as cut short is left out if it is the last."""
        held: Packet[VideoStream] | None = None
        try:
            for packet in self._feed.packets():
                if not packet.size:  # would end the decoder's work
                    continue
                if held is not None:
                    yield held
                held = packet if packet.is_corrupt else None
                if held is None:
                    yield packet
        except FFmpegError as error:
            record_damage(self._damage, f"reading stopped: {reason_of(error)}")
        if held is not None:
            record_damage(self._damage, "the last packet is cut short")

    def decode(self, packet: Packet[VideoStream]) -> Iterator[VideoFrame]:
        """Yield the frames that come out of the decoder with a packet; count what fails as damage."""
        if is_encrypted(packet):
            self._pending -= 1
            record_damage(self._damage, "a picture is encrypted")
            return
        try:
            frames = self._feed.decoder.decode(packet)
        except FFmpegError as error:
            self._pending -= 1
            if self._count or self._beginning.failed():
                record_damage(self._damage, f"a picture could not be decoded: {reason_of(error)}")
            return
        yield from self._counted(frames)

    def _counted(self, frames: list[VideoFrame]) -> Iterator[VideoFrame]:
        for frame in frames:
            self._pending -= 1
            self._count += 1
            if frame.pts is not None:
                self._last = frame.pts if self._last is None else max(self._last, frame.pts)
            if frame.is_corrupt:
                record_damage(self._damage, "a picture was decoded with errors")
            yield frame

    def _drain(self) -> Iterator[VideoFrame]:
        """The frames still inside the decoder.

        An error among them hides those after it: PyAV cannot continue, and may not even report it. If fewer frames come
        out than packets went in, the end of the stream is decoded again, without frame threads.
        """
        try:
            yield from self._counted(self._feed.decoder.decode(None))
            failed = False
        except FFmpegError:
            failed = True
        last = self._last
        tail = self._feed.tail(last) if last is not None and self._pending > 0 else None
        if tail is not None:
            yield from self._rescued(tail, last or 0)
        elif failed:
            record_damage(self._damage, "the last pictures could not be decoded", max(self._pending, 1))

    def _rescued(self, tail: Feed, last: int) -> Iterator[VideoFrame]:
        """The frames and errors after a time; those before are already counted."""
        packets = FrameDecoder(tail, Damage())._packets()
        failures = 0
        try:
            for packet in chain(packets, [None]):
                try:
                    frames = tail.decoder.decode(packet)
                except FFmpegError:
                    failures += packet is None or packet.pts is None or packet.pts > last
                    continue
                yield from self._counted([f for f in frames if f.pts is not None and f.pts > last])
        finally:
            tail.close()
        lost = min(failures, self._pending)
        if lost > 0:
            record_damage(self._damage, "the last pictures could not be decoded", lost)


def reason_of(error: FFmpegError) -> str:
    """libav's reason in plain lower case, without the address it may carry."""
    if isinstance(error, MemoryError):
        return "out of memory, or the size of a packet is damaged"
    return (error.strerror or type(error).__name__).lower()
