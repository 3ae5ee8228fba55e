"""TIFF pictures that are compressed by JPEG (TIFF 6.0, section 22; technical note 2), which FFmpeg shows all black.

OpenCV decodes them; what is handed on is a TIFF again, without compression, so that all else is read as of any other.
"""

import struct
from typing import Final, NamedTuple

import cv2
import numpy as np

_BY_JPEG: Final = {6, 7}
_COMPRESSION: Final = 259  # tags
_ORIENTATION: Final = 274


def without_jpeg(content: bytes) -> bytes:
    """A TIFF of the same picture that is not compressed by JPEG: ``content`` itself where that is not.

    Of a picture that cannot be decoded a few bytes, which no decoder takes for one.
    """
    fields = _short_fields(content)
    if _COMPRESSION not in fields or fields[_COMPRESSION].value not in _BY_JPEG:
        return content
    stored, orientation = bytearray(content), 1
    if _ORIENTATION in fields:
        orientation, place = fields[_ORIENTATION]
        stored[place : place + 2] = b"\1\0" if content[:1] == b"I" else b"\0\1"  # else OpenCV turns some of them
    try:
        pixels = cv2.imdecode(np.frombuffer(stored, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        pixels = None
    return content[:8] if pixels is None else _plain(np.asarray(pixels, np.uint8), orientation)


class _Field(NamedTuple):
    value: int
    place: int  # bytes


def _short_fields(content: bytes) -> dict[int, _Field]:
    """Those fields of a TIFF's first directory that are one 16-bit number, by their tag; none where it is no TIFF."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(content[:4])
    if order is None or len(content) < 8:
        return {}
    (at,) = struct.unpack_from(order + "I", content, 4)
    fields = {}
    if at + 2 <= len(content):
        (count,) = struct.unpack_from(order + "H", content, at)
        for place in range(at + 2, min(at + 2 + 12 * count, len(content) - 11), 12):
            tag, kind, number, value = struct.unpack_from(order + "HHIH", content, place)
            if (kind, number) == (3, 1):
                fields[tag] = _Field(value, place + 8)
    return fields


def _plain(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], orientation: int) -> bytes:
    """An uncompressed TIFF of B'G'R' pixels, uint8[H, W, 3] (TIFF 6.0, section 6)."""
    height, width = pixels.shape[:2]
    data = pixels[..., ::-1].tobytes()
    bits_at = 8 + 2 + 11 * 12 + 4
    fields = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 3, bits_at),
        (_COMPRESSION, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, bits_at + 6),
        (_ORIENTATION, 3, 1, orientation),
        (277, 3, 1, 3),
        (278, 4, 1, height),
        (279, 4, 1, len(data)),
        (284, 3, 1, 1),
    ]
    directory = b"".join(struct.pack("<HHII", *field) for field in fields)
    head = b"II*\0" + struct.pack("<IH", 8, len(fields)) + directory + bytes(4)
    return head + struct.pack("<3H", 8, 8, 8) + data
