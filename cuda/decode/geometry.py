"""What H.264 and HEVC streams ask for and the hardware does not do: cropping at the left or the top, and turning."""

from typing import Final

from foveate.cuda.decode.annex_b import SEQUENCE, leading_units
from foveate.cuda.decode.sequence import crops_at_start

CROPPED: Final = "the picture has to be cropped"
TURNED: Final = "the picture has to be turned"
_INFORMATION: Final = {"h264": 6, "hevc": 39}  # types of units of supplemental enhancement information
_HEADER: Final = {"h264": 1, "hevc": 2}  # bytes of a unit's header
_ORIENTATION: Final = 47  # payload type of a display orientation (ITU-T H.264, D.1.1; H.265, D.2.1)


class GeometryWatch:
    """Looks at the packets of one stream."""

    def __init__(self, codec: str) -> None:
        """``codec`` is PyAV's name of the decoder; of others than H.264 and HEVC nothing is said."""
        self._codec = codec
        self._seen: set[bytes] = set()  # sequence parameter sets that do not crop there

    def problem(self, data: bytes) -> str | None:
        """What a packet in Annex B form, or parameter sets alone, ask for; None: nothing that the hardware lacks."""
        if self._codec not in SEQUENCE:
            return None
        for kind, unit in leading_units(self._codec, data):
            if kind == SEQUENCE[self._codec] and unit not in self._seen:
                if crops_at_start(self._codec, unit):
                    return CROPPED
                self._seen.add(unit)
            if kind == _INFORMATION[self._codec] and _turns(unit[_HEADER[self._codec] :]):
                return TURNED
        return None


def _turns(information: bytes) -> bool:
    """Whether a display orientation that flips or turns is among some messages (H.264, 7.3.2.3.1 and D.1.27)."""
    data = information.replace(b"\0\0\3", b"\0\0")
    at = 0
    while at + 2 < len(data):
        kind, at = _sum(data, at)
        size, at = _sum(data, at)
        if kind == _ORIENTATION:
            bits = int.from_bytes(data[at : at + 3].ljust(3, b"\0"), "big")  # cancel, flips, 16 of the angle
            if not bits >> 23 and bits >> 5 & 0x3FFFF:
                return True
        at += size
    return False


def _sum(data: bytes, at: int) -> tuple[int, int]:
    """A number in bytes of which the last is not 255, and where the next thing lies."""
    total = 0
    while at < len(data):
        total, at = total + data[at], at + 1
        if data[at - 1] != 255:
            break
    return total, at
