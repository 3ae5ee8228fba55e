"""What the headers of VP9 frames tell of their format (VP9 Bitstream & Decoding Process Specification, 6.1, 6.2, B)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from foveate.cuda.decode.bits import Bits

_HEADER: Final = 32  # bytes of a frame in which its format is told
_SLOTS: Final = 8  # frames that later ones can refer to
_REFERENCES: Final = 3  # of them that one frame refers to
_SYNC_CODE: Final = 24  # bits
_SRGB: Final = 7  # color_space
_SUPERFRAME: Final = 0b110  # the upper bits of the last byte, behind which an index of frames lies (B.3)


class Format(NamedTuple):
    """Of the pictures of a frame. A decoder of one format does not decode another."""

    profile: int
    width: int  # pixels
    height: int
    chroma: int  # 1 is 4:2:0, 2 is 4:2:2 or 4:4:0, 3 is 4:4:4
    depth: int  # bits of a sample


class Shown(NamedTuple):
    """A frame that is shown."""

    format: Format
    keyframe: bool  # decoding can begin at its packet


class Vp9Headers:
    """Reads the packets of one stream in decoding order."""

    def __init__(self) -> None:
        self._slots: list[Format | None] = [None] * _SLOTS

    def shown(self, packet: bytes) -> Shown | None:
        """The frame of a packet that is shown; None where there is none, or where its format is not known."""
        found, keyframe = None, False
        try:
            for frame in _frames(packet):
                bits = Bits(frame[:_HEADER])
                told, is_key, is_shown = self._read(bits)
                keyframe |= is_key
                if is_shown:
                    found = told
        except IndexError:
            return None
        return None if found is None else Shown(found, keyframe)

    def _read(self, bits: Bits) -> tuple[Format | None, bool, bool]:
        """Format of one frame, and whether it is a keyframe, and shown."""
        bits.take(2)
        profile = bits.take(1) | bits.take(1) << 1
        if profile == 3:
            bits.take(1)
        if bits.take(1):
            return self._slots[bits.take(3)], False, True
        is_key, is_shown, resilient = not bits.take(1), bool(bits.take(1)), bits.take(1)
        if is_key:
            bits.take(_SYNC_CODE)
            chroma, depth = _colours(bits, profile)
            told: Format | None = _format(bits, profile, chroma, depth)
            refreshed = (1 << _SLOTS) - 1
        else:
            intra = 0 if is_shown else bits.take(1)
            if not resilient:
                bits.take(2)
            told, refreshed = self._intra(bits, profile) if intra else self._inter(bits, profile)
        for slot in range(_SLOTS):
            if refreshed >> slot & 1:
                self._slots[slot] = told
        return told, is_key, is_shown

    @staticmethod
    def _intra(bits: Bits, profile: int) -> tuple[Format, int]:
        """Format of an intra-only frame, and which slots it refreshes."""
        bits.take(_SYNC_CODE)
        chroma, depth = _colours(bits, profile) if profile else (1, 8)
        refreshed = bits.take(_SLOTS)
        return _format(bits, profile, chroma, depth), refreshed

    def _inter(self, bits: Bits, profile: int) -> tuple[Format | None, int]:
        """The same of a frame that refers to others, and may take its size from one of them."""
        refreshed = bits.take(_SLOTS)
        references = [(bits.take(3), bits.take(1))[0] for _ in range(_REFERENCES)]
        for slot in references:
            if bits.take(1):
                return self._slots[slot], refreshed
        known = self._slots[references[0]]
        return known and _format(bits, profile, known.chroma, known.depth), refreshed


def _frames(packet: bytes) -> Iterator[bytes]:
    """The frames of a packet, which is one, or a superframe of several (B.2)."""
    last = packet[-1]
    size, count = (last >> 3 & 3) + 1, (last & 7) + 1
    start = len(packet) - 2 - size * count
    if last >> 5 != _SUPERFRAME or start < 0 or packet[start] != last:
        yield packet
        return
    at = 0
    for number in range(count):
        place = start + 1 + size * number
        length = int.from_bytes(packet[place : place + size], "little")
        if length:
            yield packet[at : at + length]
        at += length


def _colours(bits: Bits, profile: int) -> tuple[int, int]:
    """color_config: chroma as Format has it, and the bits of a sample."""
    depth = 8 if profile < 2 else 10 + 2 * bits.take(1)
    if bits.take(3) == _SRGB:
        if profile & 1:
            bits.take(1)
        return 3, depth
    bits.take(1)
    if not profile & 1:
        return 1, depth
    across, down = bits.take(1), bits.take(1)
    bits.take(1)
    return (1 if down else 2) if across else 3, depth


def _format(bits: Bits, profile: int, chroma: int, depth: int) -> Format:
    width, height = bits.take(16) + 1, bits.take(16) + 1
    return Format(profile, width, height, chroma, depth)
