"""Packets to decoded frames, past everything that is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, Protocol

from av.error import FFmpegError
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from foveate.pipeline.frames import Damage

_MESSAGES_KEPT = 5
Times = Literal["stream", "rate", "setting"]
"""Where times come from: the stream, its declared frame rate, or the rate setting."""


class Feed(Protocol):
    """The packets of one video stream, their decoder, and what is known of both."""

    decoder: VideoCodecContext
    time_base: Fraction  # seconds per tick of a frame's timestamp
    rate: float | None  # declared frames per second
    average_rate: float | None
    frames: int | None  # how many there should be
    sample_aspect: float
    times: Times
    decode_order: bool  # only decoding timestamps can be trusted

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield packets in decoding order. Raises FFmpegError where the stream cannot be read further."""

    def shortfall(self) -> str | None:
        """Once the packets are through: why there are fewer than there should be, or None."""

    def close(self) -> None:
        """Release everything. Safe to call twice."""


def record_damage(damage: Damage, message: str, frames: int = 1) -> None:
    """Count lost frames, and keep the message if it is a new one and there are not yet too many."""
    damage.frames += frames
    if message not in damage.messages and len(damage.messages) < _MESSAGES_KEPT:
        damage.messages.append(message)


def decoded(feed: Feed, damage: Damage) -> Iterator[VideoFrame]:
    """Yield every frame that can be decoded, in presentation order; count the rest as damage.

    A packet marked as cut short that turns out to be the last is not decoded: its error would come up while
    the decoder is drained, where PyAV cannot read past it, and cost the intact frames behind it.
    """
    count = 0
    for packet in _usable_packets(feed, damage):
        for frame in _decode(feed, packet, damage):
            count += 1
            yield frame
    for frame in _decode(feed, None, damage):
        count += 1
        yield frame
    reason = feed.shortfall()
    if reason is not None:
        missing = feed.frames - count - damage.frames if feed.frames else 0
        record_damage(damage, reason, max(missing, int(damage.frames == 0)))


def _usable_packets(feed: Feed, damage: Damage) -> Iterator[Packet[VideoStream]]:
    held: Packet[VideoStream] | None = None
    try:
        for packet in feed.packets():
            if not packet.size:  # would end the decoder's work
                continue
            if held is not None:
                yield held
                held = None
            if packet.is_corrupt:
                held = packet
            else:
                yield packet
    except FFmpegError as error:
        record_damage(damage, f"reading stopped: {reason_of(error)}")
    if held is not None:
        record_damage(damage, "the last packet is cut short")


def _decode(feed: Feed, packet: Packet[VideoStream] | None, damage: Damage) -> Iterator[VideoFrame]:
    try:
        frames = feed.decoder.decode(packet)
    except FFmpegError as error:
        record_damage(damage, f"a picture could not be decoded: {reason_of(error)}")
        return
    for frame in frames:
        if frame.is_corrupt:
            record_damage(damage, "a picture was decoded with errors")
        yield frame


def reason_of(error: FFmpegError) -> str:
    """libav's reason in plain lower case, without the address it may carry."""
    return (error.strerror or type(error).__name__).lower()
