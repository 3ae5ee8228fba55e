"""H.264 and HEVC packets as the hardware takes them: start codes instead of lengths (ITU-T H.264 and H.265, Annex B).

FFmpeg's bit stream filters do the same, but let go of the interpreter's lock three times for each packet: where several
files are decoded at once, waiting for it again takes far longer than the work.
"""

from collections.abc import Iterator
from typing import Final

START: Final = b"\0\0\0\1"
_SHORT: Final = b"\0\0\1"  # a start code of which the first byte is the end of what is before
SEQUENCE: Final = {"h264": 7, "hevc": 33}  # types of sequence parameter sets
_SLICES: Final = {"h264": range(1, 6), "hevc": range(32)}
_RANDOM_ACCESS: Final = {"h264": range(5, 6), "hevc": range(16, 24)}  # types of slices at which decoding can begin


class AnnexB:
    """Converts the packets of one stream."""

    def __init__(self, codec: str, configuration: bytes) -> None:
        """``codec`` is "h264" or "hevc"; ``configuration`` is what the container tells for the decoder.

        That is a record of ISO/IEC 14496-15, 5.3.3.1 or 8.3.3.1; else packets have start codes already, and stay as
        they are. Raises ValueError for a record that is cut.
        """
        self._kind_of = _h264_type if codec == "h264" else _hevc_type
        self._sequence, self._entries, self._slices = SEQUENCE[codec], _RANDOM_ACCESS[codec], _SLICES[codec]
        sets: list[bytes] = []
        self._length = 0
        if configuration[:1] == b"\1":
            try:
                self._length, sets = (_avc if codec == "h264" else _hevc)(configuration)
            except IndexError:
                raise ValueError(f"the {codec} configuration of {len(configuration)} bytes is cut") from None
        self._sets = b"".join(START + each for each in sets)
        self._first = True
        self.parameter_sets = self._sets or configuration
        """What is told of the stream beside its packets, in Annex B form."""

    def convert(self, packet: bytes) -> bytes:
        """The packet's units, each behind a start code; parameter sets before them, where decoding can begin there.

        Raises ValueError for lengths that do not fit.
        """
        if not self._length:
            return packet
        units = _units(packet, self._length)
        kinds = {self._kind_of(unit[0]) for unit in units}
        begins = self._first or any(kind in self._entries for kind in kinds)
        self._first = False
        lead = self._sets if begins and self._sequence not in kinds else b""
        return lead + b"".join(START + unit for unit in units)

    def beginning(self, keyframe: bytes) -> bytes:
        """The units of a keyframe before its first slice, as ``convert`` puts them; the rest need not be at hand."""
        if not self._length:
            return keyframe
        found, at, lead = b"", 0, self._sets
        while at + self._length < len(keyframe):
            size, start = int.from_bytes(keyframe[at : at + self._length], "big"), at + self._length
            kind = self._kind_of(keyframe[start])
            if kind in self._slices:
                break
            if kind == self._sequence:
                lead = b""
            found, at = found + START + keyframe[start : start + size], start + size
        return lead + found


def leading_units(codec: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and content of each unit before the first slice of some data in Annex B form."""
    kind_of = _h264_type if codec == "h264" else _hevc_type
    start = data.find(_SHORT)
    while start >= 0 and start + 3 < len(data):
        start += 3
        kind = kind_of(data[start])
        if kind in _SLICES[codec]:
            return
        end = data.find(_SHORT, start)
        yield kind, data[start : len(data) if end < 0 else end].rstrip(b"\0")
        start = end


def unit_type(codec: str, unit: bytes) -> int:
    """nal_unit_type of a unit."""
    return _h264_type(unit[0]) if codec == "h264" else _hevc_type(unit[0])


def _units(packet: bytes, length: int) -> list[bytes]:
    units, at, end = [], 0, len(packet)
    while at < end:
        size, start = int.from_bytes(packet[at : at + length], "big"), at + length
        at = start + size
        if at > end:
            raise ValueError(f"a unit of {size} bytes in a packet of {end}")
        if size:
            units.append(packet[start:at])
    return units


def _h264_type(head: int) -> int:
    return head & 31


def _hevc_type(head: int) -> int:
    return head >> 1 & 63


def _avc(record: bytes) -> tuple[int, list[bytes]]:
    """Bytes of a length, and the parameter sets of an AVCDecoderConfigurationRecord."""
    sets: list[bytes] = []
    at = 5
    for mask in (31, 255):
        count, at = record[at] & mask, at + 1
        at = _take(record, at, count, sets)
    return (record[4] & 3) + 1, sets


def _hevc(record: bytes) -> tuple[int, list[bytes]]:
    """The same of an HEVCDecoderConfigurationRecord."""
    sets: list[bytes] = []
    at = 23
    for _ in range(record[22]):
        at = _take(record, at + 3, record[at + 1] << 8 | record[at + 2], sets)
    return (record[21] & 3) + 1, sets


def _take(record: bytes, at: int, count: int, sets: list[bytes]) -> int:
    """Append ``count`` sets, each behind its length, and return where the next thing lies."""
    for _ in range(count):
        size, at = record[at] << 8 | record[at + 1], at + 2
        if at + size > len(record):
            raise IndexError
        sets.append(record[at : at + size])
        at += size
    return at
