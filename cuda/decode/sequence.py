"""What sequence parameter sets tell, of H.264 (7.3.2.1.1, E.1.1) and HEVC (H.265, 7.3.2.2.1)."""

from dataclasses import dataclass
from typing import Final

from foveate.cuda.decode.bits import Bits

_HIGH: Final = {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135}
"""Values of profile_idc with which a set tells of chroma, depths and scaling."""
_INTRA: Final = {44, 86, 100, 110, 122, 244}
"""Values of profile_idc of which constraint_set3_flag makes a profile of intra pictures alone (E.2.1)."""
_BASELINE: Final = 66  # knows no B slices
_PROFILE: Final = 88  # bits of a profile, of HEVC, without the level (7.3.3)
_EXTENDED: Final = 255  # aspect_ratio_idc behind which width and height follow (E.1.1)
_MACROBLOCK: Final = 16  # pixels


@dataclass(frozen=True, slots=True)
class Sequence:
    """What a sequence parameter set tells of the pictures behind it."""

    profile: int
    width: int  # pixels, before cropping
    height: int
    chroma: int  # chroma_format_idc: 1 is 4:2:0
    depth: int  # bits of a luma sample
    cropping: tuple[int, int, int, int]  # left, right, top and bottom, in the set's own units
    reorders: bool  # pictures may be shown in another order than they are decoded in

    @property
    def crops_at_start(self) -> bool:
        """Whether it crops at the left or the top."""
        left, _, top, _ = self.cropping
        return bool(left or top)


def sequence_of(codec: str, unit: bytes) -> Sequence | None:
    """What a sequence parameter set tells; ``codec`` is "h264" or "hevc". None for one that is cut."""
    try:
        return _h264(_content(unit[1:])) if codec == "h264" else _hevc(_content(unit[2:]))
    except IndexError:
        return None


def _content(data: bytes) -> Bits:
    """Without the bytes that only keep start codes out (7.4.1)."""
    return Bits(data.replace(b"\0\0\3", b"\0\0"))


def crops_at_start(codec: str, unit: bytes) -> bool:
    """Whether a sequence parameter set crops at the left or the top. One that is cut does not."""
    sequence = sequence_of(codec, unit)
    return sequence is not None and sequence.crops_at_start


def _h264(bits: Bits) -> Sequence:
    profile, constraints = bits.take(8), bits.take(8)
    bits.take(8)
    bits.unsigned()
    chroma, depth = _chroma_and_depth(bits) if profile in _HIGH else (1, 8)
    bits.unsigned()
    order = _skip_order(bits)
    bits.unsigned()
    bits.take(1)
    columns, rows = bits.unsigned() + 1, bits.unsigned() + 1
    fields = 2 - bits.take(1)
    bits.take(fields)  # of frames alone one flag, else two
    cropping = _cropping(bits)
    intra = profile in _INTRA and constraints >> 4 & 1
    reorders = order != 2 and profile != _BASELINE and not intra and _told_reordering(bits)
    return Sequence(
        profile, _MACROBLOCK * columns, _MACROBLOCK * fields * rows, chroma, depth, cropping, bool(reorders)
    )


def _chroma_and_depth(bits: Bits) -> tuple[int, int]:
    chroma = bits.unsigned()
    bits.take(int(chroma == 3))
    depth = bits.unsigned() + 8
    bits.unsigned()
    bits.take(1)
    if bits.take(1):
        for number in range(12 if chroma == 3 else 8):
            if bits.take(1):
                _skip_scaling_list(bits, 16 if number < 6 else 64)
    return chroma, depth


def _skip_scaling_list(bits: Bits, size: int) -> None:
    """7.3.2.1.1.1: it ends early where the next scale would be 0."""
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.signed()) % 256
        last = following or last


def _skip_order(bits: Bits) -> int:
    """Returns pic_order_cnt_type; 2 means that pictures are shown as they are decoded (8.2.1.3)."""
    order = bits.unsigned()
    if order == 0:
        bits.unsigned()
    elif order == 1:
        bits.take(1)
        for _ in range(2):
            bits.signed()
        for _ in range(bits.unsigned()):
            bits.signed()
    return order


def _cropping(bits: Bits) -> tuple[int, int, int, int]:
    if not bits.take(1):
        return 0, 0, 0, 0
    return bits.unsigned(), bits.unsigned(), bits.unsigned(), bits.unsigned()


def _told_reordering(bits: Bits) -> bool:
    """E.1.1: max_num_reorder_frames, at the end of the video usability information; without it: True."""
    if not bits.take(1):
        return True
    if bits.take(1) and bits.take(8) == _EXTENDED:
        bits.take(32)
    if bits.take(1):
        bits.take(1)
    if bits.take(1):
        bits.take(4)
        if bits.take(1):
            bits.take(24)
    if bits.take(1):
        bits.unsigned()
        bits.unsigned()
    if bits.take(1):
        bits.take(65)
    models = [_skip_model(bits) for _ in range(2)]
    if any(models):
        bits.take(1)
    bits.take(1)
    if not bits.take(1):
        return True
    bits.take(1)
    for _ in range(4):
        bits.unsigned()
    return bits.unsigned() > 0


def _skip_model(bits: Bits) -> bool:
    """E.1.2; whether it is there."""
    if not bits.take(1):
        return False
    count = bits.unsigned() + 1
    bits.take(8)
    for _ in range(count):
        bits.unsigned()
        bits.unsigned()
        bits.take(1)
    bits.take(20)
    return True


def _hevc(bits: Bits) -> Sequence:
    bits.take(4)
    layers = bits.take(3)
    bits.take(1)
    profile = bits.take(8) & 31
    bits.take(_PROFILE - 8 + 8)
    present = [(bits.take(1), bits.take(1)) for _ in range(layers)]
    if layers:
        bits.take(2 * (8 - layers))
    for has_profile, has_level in present:
        bits.take(_PROFILE * has_profile + 8 * has_level)
    bits.unsigned()
    chroma = bits.unsigned()
    if chroma == 3:
        bits.take(1)
    width, height = bits.unsigned(), bits.unsigned()
    cropping = _cropping(bits)
    depth = bits.unsigned() + 8
    bits.unsigned()
    bits.unsigned()
    told = layers + 1 if bits.take(1) else 1
    reordered = [(bits.unsigned(), bits.unsigned(), bits.unsigned())[1] for _ in range(told)]
    return Sequence(profile, width, height, chroma, depth, cropping, reordered[-1] > 0)
