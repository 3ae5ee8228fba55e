"""Whether a file is shorter than its own structure says: the sure sign of an interrupted copy."""

import io
from pathlib import Path
from typing import BinaryIO

from foveate.pipeline.sources.matroska import EBML, SEGMENT, element

_UNKNOWN_SIZES = {0, 0xFFFFFFFF}  # of a RIFF that was written to a pipe
_FILM_BOXES = set(b"ftyp moov mdat meta moof styp sidx imda".split())
"""At the top level, without which pictures are lost (ISO 14496-12, table 1; ISO 23009-1)."""
_BOXES = _FILM_BOXES | set(b"free skip wide pnot udta uuid meco pdin mfra ssix prft emsg".split())  # also QuickTime's


def missing_bytes(path: Path) -> int:
    """Bytes that the file's structure announces beyond its end; 0 if none, or if it does not say.

    Knows MP4 and MOV (box sizes), Matroska and WebM (segment size), AVI (RIFF size), GIF (block sizes).
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        return max(announced(file) - size, 0)


def announced(file: BinaryIO) -> int:
    """Where the file, read from its beginning, should end at least, by its structure; 0 if it does not say."""
    head = file.read(12)
    file.seek(0)
    if head[:4] == b"RIFF":
        length = int.from_bytes(head[4:8], "little")  # less the 8 bytes of this header: some count them
        return 0 if length in _UNKNOWN_SIZES else length
    if head[:4] == b"GIF8":
        return _gif_end(file)
    if head[:4] == EBML.to_bytes(4, "big"):
        return _matroska_end(file)
    if head[4:8] in _BOXES:
        return _boxes_end(file)
    return 0


def _boxes_end(file: BinaryIO) -> int:
    """Where the last top-level box with pictures ends (ISO 14496-12, 4.2); other data after it is accepted."""
    position = end = 0
    while len(head := file.read(16)) >= 8 and head[4:8] in _BOXES:
        length = int.from_bytes(head[:4], "big")
        if length == 1:
            length = int.from_bytes(head[8:16], "big")
        if length < 8:  # 0: up to the end of the file
            return 0
        position += length
        end = position if head[4:8] in _FILM_BOXES else end
        file.seek(position)
    return end


def _matroska_end(file: BinaryIO) -> int:
    """Where the segment ends, 0 if its size is unknown (RFC 8794, 11; RFC 9559, 5)."""
    header = element(file, 0)
    if header is None or header.size is None:
        return 0
    segment = element(file, header.start + header.size)
    if segment is None or segment.identity != SEGMENT or segment.size is None:
        return 0
    return segment.start + segment.size


def _gif_end(file: BinaryIO) -> int:
    """Where the last block in the file ends (GIF89a, appendix B). A missing trailer is accepted."""
    file.seek(10)
    _skip_palette(file, 2)
    while introducer := file.read(1):
        if introducer == b"\x2c":
            file.seek(8, io.SEEK_CUR)
            _skip_palette(file, 0)
            file.seek(1, io.SEEK_CUR)
        elif introducer == b"\x21":
            file.seek(1, io.SEEK_CUR)
        else:
            return 0
        while (length := file.read(1)) and length != b"\0":
            file.seek(length[0], io.SEEK_CUR)
        if not length:
            return file.tell() + 1
    return file.tell()


def _skip_palette(file: BinaryIO, after: int) -> None:
    """Pass a byte of flags, ``after`` bytes more, and the colour table that the flags announce."""
    flags = (file.read(1) or b"\0")[0]
    file.seek(after + (3 << (flags & 7) + 1 if flags & 0x80 else 0), io.SEEK_CUR)
