"""Cropping at the left or the top, in the sequence parameter sets of H.264 (7.3.2.1.1) and HEVC (H.265, 7.3.2.2.1)."""

from __future__ import annotations

from typing import Final

_HIGH: Final = {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135}
"""Values of profile_idc with which a set tells of chroma, depths and scaling."""
_PROFILE: Final = 88  # bits of a profile, of HEVC, without the level (7.3.3)


class _Bits:
    """The bits of a unit's content, one after the other. Raises IndexError behind the last."""

    def __init__(self, content: bytes) -> None:
        data = content.replace(b"\0\0\3", b"\0\0")  # 7.4.1: what only keeps start codes out
        self._value, self._left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, count: int) -> int:
        """An unsigned number of so many bits."""
        self._left -= count
        if self._left < 0:
            raise IndexError
        return self._value >> self._left & (1 << count) - 1

    def unsigned(self) -> int:
        """An unsigned Exp-Golomb number (9.1)."""
        zeros = 0
        while not self.take(1):
            zeros += 1
        return (1 << zeros) - 1 + self.take(zeros)

    def signed(self) -> int:
        """A signed one (9.1.1)."""
        coded = self.unsigned()
        return (coded + 1) // 2 if coded & 1 else -(coded // 2)


def crops_at_start(codec: str, unit: bytes) -> bool:
    """Whether a sequence parameter set crops at the left or the top. One that is cut does not."""
    try:
        bits = _Bits(unit[1 if codec == "h264" else 2 :])
        (_to_cropping_h264 if codec == "h264" else _to_cropping_hevc)(bits)
        if not bits.take(1):
            return False
        left, _, top, _ = (bits.unsigned() for _ in range(4))
    except IndexError:
        return False
    return bool(left or top)


def _to_cropping_h264(bits: _Bits) -> None:
    profile = bits.take(24) >> 16
    bits.unsigned()
    if profile in _HIGH:
        _skip_chroma_and_scaling(bits)
    bits.unsigned()
    order = bits.unsigned()
    if order == 0:
        bits.unsigned()
    elif order == 1:
        bits.take(1)
        for _ in range(2):
            bits.signed()
        for _ in range(bits.unsigned()):
            bits.signed()
    bits.unsigned()
    bits.take(1)
    for _ in range(2):  # width and height
        bits.unsigned()
    bits.take(1 if bits.take(1) else 2)  # frames only, else one flag more


def _skip_chroma_and_scaling(bits: _Bits) -> None:
    chroma = bits.unsigned()
    bits.take(int(chroma == 3))
    for _ in range(2):  # depths
        bits.unsigned()
    bits.take(1)
    if bits.take(1):
        for number in range(12 if chroma == 3 else 8):
            if bits.take(1):
                _skip_scaling_list(bits, 16 if number < 6 else 64)


def _skip_scaling_list(bits: _Bits, size: int) -> None:
    """7.3.2.1.1.1: it ends early where the next scale would be 0."""
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.signed()) % 256
        last = following or last


def _to_cropping_hevc(bits: _Bits) -> None:
    bits.take(4)
    layers = bits.take(3)
    bits.take(1 + _PROFILE + 8)
    present = [(bits.take(1), bits.take(1)) for _ in range(layers)]
    if layers:
        bits.take(2 * (8 - layers))
    for profile, level in present:
        bits.take(_PROFILE * profile + 8 * level)
    bits.unsigned()
    if bits.unsigned() == 3:
        bits.take(1)
    for _ in range(2):  # width and height
        bits.unsigned()
