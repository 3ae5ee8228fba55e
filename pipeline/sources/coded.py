"""What a packet shows of its picture without decoding: whether decoding can begin there, and whether others need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from av.codec.codec import Codec
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext

Role = Literal["entry", "reference", "other"]
"""``entry``: decoding that begins here gives the same pictures from here on. ``other``: no picture needs this one."""

_KEYED: Final = {"vp9", "libvpx-vp9", "av1", "libdav1d", "libaom-av1", "mpeg1video", "mpeg2video"}
"""Decoders that can begin at every packet that the container marks as a keyframe; each packet is one picture."""
_ALONE: Final = {"png"}  # every picture is a keyframe; FFmpeg reports the other such codecs itself
_START: Final = b"\0\0\1"
_HEVC_PARAMETERS: Final = 33  # the type of a sequence parameter set
_MPEG_PICTURE: Final = b"\0\0\1\0"  # a picture's start code
_MPEG_B: Final = 3  # the type that no other picture needs


def codec_of(decoder: str) -> str:
    """The codec that one of FFmpeg's decoders decodes: "av1" for libdav1d. Mostly the name is the same."""
    return Codec(decoder, "r").canonical_name


class CodedPictures:
    """Reads the packets of one stream."""

    def __init__(self, decoder: VideoCodecContext) -> None:
        self._name = decoder.name
        self._alone = decoder.codec.intra_only or decoder.name in _ALONE
        configuration = decoder.extradata or b""
        self._length = _length_size(decoder.name, configuration)
        self._single_layer = decoder.name == "hevc" and _single_layer(configuration)

    @property
    def are_known(self) -> bool:
        """Whether anything is known of this codec; else every picture may need all before it."""
        return self._alone or self._name in ("h264", "hevc") or self._name in _KEYED

    def role(self, packet: Packet[Any]) -> Role:
        """The picture's role for those that follow."""
        if self._alone:
            return "entry"
        if self._name == "h264":
            return self._h264(packet)
        if self._name == "hevc":
            return self._hevc(packet)
        if packet.is_keyframe:
            return "entry"
        return "other" if self._name.startswith("mpeg") and _is_mpeg_b(packet) else "reference"

    def needs_flush(self, packet: Packet[Any]) -> bool:
        """Whether the decoder has to be flushed before this entry, so that it does not refer to earlier pictures."""
        return self._name == "hevc" and self._slice(packet)[0] >> 1 & 63 == 21  # a clean random access picture

    def _h264(self, packet: Packet[Any]) -> Role:
        """By nal_unit_type and nal_ref_idc (ITU-T H.264, 7.3.1)."""
        head = self._slice(packet)[0]
        if head & 31 == 5:
            return "entry"
        return "reference" if head & 0x60 else "other"

    def _hevc(self, packet: Packet[Any]) -> Role:
        """By nal_unit_type (ITU-T H.265, table 7-1): even ones below 16 are not needed within their sub-layer."""
        kind = self._slice(packet)[0] >> 1 & 63
        if 16 <= kind <= 23:
            return "entry"
        return "other" if self._single_layer and kind < 16 and not kind & 1 else "reference"

    def _slice(self, packet: Packet[Any]) -> bytes:
        """The head of the first unit that belongs to a picture; of a reference picture, where there is none."""
        data = memoryview(packet)
        starts = _lengths(data, self._length) if self._length else _codes(bytes(data))
        for start in starts:
            head = data[start]
            if (1 <= head & 31 <= 5) if self._name == "h264" else (head >> 1 & 63) < 32:
                return bytes(data[start : start + 2])
        return b"\x61\x00" if self._name == "h264" else b"\x02\x00"


def _lengths(data: memoryview, size: int) -> Iterator[int]:
    """Where the units of a packet begin, each after its length."""
    at = 0
    while at + size < len(data):
        yield at + size
        at += size + int.from_bytes(data[at : at + size], "big")


def _codes(data: bytes) -> Iterator[int]:
    """The same, after start codes (Annex B)."""
    at = data.find(_START)
    while 0 <= at < len(data) - 3:
        yield at + 3
        at = data.find(_START, at + 3)


def _length_size(codec: str, configuration: bytes) -> int:
    """Bytes of a unit's length (ISO/IEC 14496-15, 5.3.3.1 and 8.3.3.1); 0 if start codes separate the units."""
    at = {"h264": 4, "hevc": 21}.get(codec, 0)
    return (configuration[at] & 3) + 1 if at and configuration[:1] == b"\1" and len(configuration) > at else 0


def _single_layer(configuration: bytes) -> bool:
    """Whether an HEVC stream says that it has one temporal sub-layer only."""
    if configuration[:1] == b"\1":
        return len(configuration) > 21 and configuration[21] >> 3 & 7 == 1
    for at in _codes(configuration):
        if configuration[at] >> 1 & 63 == _HEVC_PARAMETERS and at + 2 < len(configuration):
            return configuration[at + 2] >> 1 & 7 == 0
    return False


def _is_mpeg_b(packet: Packet[Any]) -> bool:
    """By picture_coding_type (ITU-T H.262, 6.2.3)."""
    data = bytes(packet)
    at = data.find(_MPEG_PICTURE)
    return 0 <= at < len(data) - 5 and data[at + 5] >> 3 & 7 == _MPEG_B
