"""A stream until its first picture: how long it may take, and why none comes."""

from __future__ import annotations

from typing import Final

from av.packet import Packet
from av.video.stream import VideoStream

PACKET_LIMIT = 1000  # packets without a picture, from the first keyframe on, after which a stream is given up
ENCRYPTED: Final = "it is encrypted; decrypt it first"
DAMAGED: Final = "the file is damaged or not a video"


def is_encrypted(packet: Packet[VideoStream]) -> bool:
    """Whether a packet came encrypted (ISO/IEC 23001-7): a decoder may take it for a picture all the same."""
    return packet.has_sidedata("encryption_info")


class Beginning:
    """Counts the packets of one stream until there is a picture."""

    def __init__(self) -> None:
        self.packets = 0
        self._since_keyframe = 0
        self._keyframe: int | None = None  # the first one's timestamp
        self._encrypted = False
        self._failed = 0

    @property
    def exhausted(self) -> bool:
        """Whether to give up: too many packets since the first keyframe. Waiting for that one may take long."""
        return self._since_keyframe > PACKET_LIMIT

    def count(self, packet: Packet[VideoStream]) -> None:
        """Count one packet, before it is decoded."""
        self.packets += 1
        if not self._since_keyframe and packet.is_keyframe:
            self._keyframe = packet.pts
        self._since_keyframe += packet.is_keyframe or self._since_keyframe > 0
        self._encrypted |= is_encrypted(packet)

    def failed(self) -> bool:
        """Note a packet that did not decode; whether that is damage: before a keyframe pictures lack their beginning.

        A decoder with threads reports some errors late.
        """
        self._failed += 1
        return self._failed > self.packets - self._since_keyframe

    def skipped(self, first: int | None) -> int:
        """How many packets before the first keyframe had no picture. ``first``: the first picture's timestamp."""
        if first is None or self._keyframe is None or first < self._keyframe:
            return 0
        return self.packets - self._since_keyframe

    def reason(self, obstacle: str | None) -> str:
        """Why there is no picture, and what to do. ``obstacle``: what is known of the container."""
        if self._encrypted:
            return ENCRYPTED
        if obstacle is not None:
            return obstacle
        if self.packets and not self._since_keyframe:
            return (
                f"none of its {self.packets} packets is a keyframe, where decoding could begin; it is damaged, or too "
                "short a part of a longer recording"
            )
        return DAMAGED
