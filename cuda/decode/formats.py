"""Where a stream goes on with pictures of another format, for which the hardware needs another decoder."""

from typing import Final

from foveate.cuda.decode.annex_b import SEQUENCE, leading_units
from foveate.cuda.decode.sequence import Sequence, sequence_of
from foveate.cuda.decode.vp9 import Vp9Headers

RESIZED: Final = "the picture changes its size without a keyframe"


class FormatWatch:
    """Looks at the packets of one stream, in decoding order."""

    def __init__(self, codec: str) -> None:
        """``codec`` is that of the packets; of others than H.264, HEVC and VP9 nothing is said."""
        self._codec = codec
        self._format: Sequence | None = None  # None: not known yet
        self._vp9 = Vp9Headers()
        self._set = b""  # the latest sequence parameter set
        self.problem: str | None = None
        """What the latest packet asks for that no decoder of the hardware does."""

    def changed(self, data: bytes) -> Sequence | None:
        """The format from a packet on, where it is another than before. H.264 and HEVC are in Annex B form."""
        found, entry = self._told(data)
        known, self._format = self._format, found or self._format
        if known is None or found is None or found == known:
            return None
        self.problem = None if entry else RESIZED
        return found

    def _told(self, data: bytes) -> tuple[Sequence | None, bool]:
        """The format that a packet tells, and whether decoding can begin at it."""
        if self._codec in SEQUENCE:
            return self._in_set(data), True
        shown = self._vp9.shown(data) if self._codec == "vp9" else None
        return (None, False) if shown is None else (shown.format, shown.keyframe)

    def _in_set(self, data: bytes) -> Sequence | None:
        """What the first parameter set of a packet tells, if it is not the latest one."""
        for kind, unit in leading_units(self._codec, data):
            if kind == SEQUENCE[self._codec]:
                latest, self._set = self._set, unit
                return None if unit == latest else sequence_of(self._codec, unit)
        return None
