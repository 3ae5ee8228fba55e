"""Where a stream goes on with pictures of another format, for which the hardware needs another decoder."""

from typing import Final

from foveate.cuda.decode.annex_b import SEQUENCE, leading_units
from foveate.cuda.decode.vp9 import Format, Vp9Headers

RESIZED: Final = "the picture changes its size without a keyframe"


class FormatWatch:
    """Looks at the packets of one stream, in decoding order."""

    def __init__(self, codec: str) -> None:
        """``codec`` is that of the packets; of others than H.264, HEVC and VP9 nothing is said."""
        self._codec = codec
        self._vp9 = Vp9Headers()
        self._latest: bytes | Format | None = None  # None: not known yet
        self.problem: str | None = None
        """What the latest packet asks for that no decoder of the hardware does."""

    def changed(self, data: bytes) -> bool:
        """Whether the format is another from a packet on. H.264 and HEVC are in Annex B form.

        Of these, every other sequence parameter set is another format: the number of pictures that a decoder keeps, for
        example, follows from several of its parts, and the hardware loses pictures where it grows.
        """
        found, is_entry = self._told(data)
        latest, self._latest = self._latest, found or self._latest
        if found is None or latest is None or found == latest:
            return False
        self.problem = None if is_entry else RESIZED
        return True

    def _told(self, data: bytes) -> tuple[bytes | Format | None, bool]:
        """The format that a packet tells, and whether decoding can begin at it."""
        if self._codec in SEQUENCE:
            units = leading_units(self._codec, data)
            return next((unit for kind, unit in units if kind == SEQUENCE[self._codec]), None), True
        shown = self._vp9.shown(data) if self._codec == "vp9" else None
        return (None, False) if shown is None else (shown.format, shown.keyframe)
