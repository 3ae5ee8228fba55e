"""One part of an H.264 or HEVC picture, as FFmpeg hands it out for each RTP packet (RFC 6184, RFC 7798).

It holds whole NAL units, each behind a start code, or a fragment of one; only the first fragment has a start code.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

_START: Final = b"\0\0\0\1"  # what FFmpeg puts before each unit
_CODE: Final = b"\0\0\1"
_UNNUMBERED: Final = -1  # the place of a slice that is not the first one, where its number is not read
_RECOVERY: Final = 6  # payloadType of a recovery point (ITU-T H.264, D.1.1)


class Units(NamedTuple):
    """The NAL units of a codec, by type (ITU-T H.264, table 7-1; H.265, table 7-1)."""

    header: int  # bytes
    slices: frozenset[int]
    before: frozenset[int]  # come only before the slices of a picture
    entries: frozenset[int]  # slices at which decoding can begin
    message: int | None  # supplemental information, in which a recovery point may be told


UNITS: Final = {
    "h264": Units(1, frozenset({1, 5}), frozenset({6, 7, 8, 9}), frozenset({5}), 6),
    "hevc": Units(2, frozenset(range(32)), frozenset({32, 33, 34, 35, 39}), frozenset(range(16, 24)), None),
}


class Part(NamedTuple):
    """What can be seen in one in which units begin."""

    length: int  # bytes behind the header of its first unit, as fragments are measured
    continues: bool  # it begins with the rest of a unit
    whole: bool  # several units in one RTP packet, none of which is a fragment
    slices: int  # units of slices that begin in it
    place: int | None  # first_mb_in_slice of the first of these; of HEVC 0 or _UNNUMBERED; None: none begins in it
    ends_in_slice: bool  # whether its last unit is a slice
    leads: bool  # begins with what comes before the slices of a picture
    keyframe: bool  # a keyframe's slice or a recovery point is in it


def part_of(codec: str, data: bytes) -> Part | None:
    """Look at one part; None for one that is only a further fragment."""
    found = list(_units(data))
    if not found:
        return None
    units, continues = UNITS[codec], not data.startswith(_START)
    kinds = [_kind(codec, data, at) for at in found]
    slices = [at for at, kind in zip(found, kinds, strict=True) if kind in units.slices]
    return Part(
        length=len(data) - len(_START) - units.header,
        continues=continues,
        whole=not continues and len(kinds) > 1,
        slices=len(slices),
        place=_place(codec, data, slices[0]) if slices else None,
        ends_in_slice=kinds[-1] in units.slices,
        leads=not continues and kinds[0] in units.before,
        keyframe=any(
            kind in units.entries or (kind == units.message and _is_recovery_point(data[at + units.header :]))
            for at, kind in zip(found, kinds, strict=True)
        ),
    )


def _units(data: bytes) -> Iterator[int]:
    """Where each unit begins, behind its start code."""
    at = data.find(_CODE) + 3
    while 3 <= at < len(data) - 1:
        yield at
        at = data.find(_CODE, at) + 3


def _kind(codec: str, data: bytes, at: int) -> int:
    """nal_unit_type; of units of further layers of HEVC one that is not in use."""
    if codec == "h264":
        return data[at] & 31
    return 63 if data[at] & 1 or data[at + 1] >> 3 else data[at] >> 1 & 63


def _place(codec: str, data: bytes, at: int) -> int:
    """Which slice of a picture it is; see Part."""
    if codec == "hevc":
        return 0 if at + 2 < len(data) and data[at + 2] & 0x80 else _UNNUMBERED
    head = int.from_bytes(data[at + 1 : at + 6].ljust(5, b"\0"), "big")  # ue(v), of at most 2 * 19 + 1 bits
    zeros = 40 - head.bit_length()
    return (head >> (39 - 2 * zeros)) - 1 if zeros < 20 else _UNNUMBERED


def _is_recovery_point(messages: bytes) -> bool:
    """Whether one of the messages of a supplemental unit is a recovery point (ITU-T H.264, 7.3.2.3.1)."""
    at = 0
    while at + 2 < len(messages):
        kind, at = _varied(messages, at)
        size, at = _varied(messages, at)
        if kind == _RECOVERY:
            return True
        at += size
    return False


def _varied(data: bytes, at: int) -> tuple[int, int]:
    """A number that bytes of 255 continue, and where the next thing lies."""
    number = 0
    while at < len(data) and data[at] == 255:
        number, at = number + 255, at + 1
    return number + (data[at] if at < len(data) else 0), at + 1
