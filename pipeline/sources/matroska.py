"""The elements of Matroska and WebM files (RFC 8794), and the cropping that they declare (RFC 9559)."""

from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from foveate.pipeline.sources.cropping import Crop, margins

EBML: Final = 0x1A45DFA3
SEGMENT: Final = 0x18538067
_TRACKS, _ENTRY, _TYPE, _VIDEO = 0x1654AE6B, 0xAE, 0x83, 0xE0
_IS_VIDEO: Final = 1
_WIDTH, _HEIGHT, _BOTTOM, _TOP, _LEFT, _RIGHT = 0xB0, 0xBA, 0x54AA, 0x54BB, 0x54CC, 0x54DD
_LONGEST: Final = 4096  # elements at the top of a segment after which no tracks are looked for any more


class Element(NamedTuple):
    """An element: its identity, where its content begins, and its size in bytes; None if unknown."""

    identity: int
    start: int
    size: int | None


def element(file: BinaryIO, at: int) -> Element | None:
    """The element at a place, None where there is none (RFC 8794, 4 and 5)."""
    file.seek(at)
    head = file.read(12)
    if not head or not head[0]:
        return None
    length = 9 - head[0].bit_length()
    if length > 4 or len(head) <= length or not head[length]:
        return None
    width = 9 - head[length].bit_length()
    bits = 7 * width
    size = int.from_bytes(head[length : length + width], "big") & ((1 << bits) - 1)
    known = size if size != (1 << bits) - 1 else None
    return Element(int.from_bytes(head[:length], "big"), at + length + width, known)


def video_crops(file: BinaryIO, size: int) -> list[Crop | None]:
    """The cropping of each video track, in the order of the tracks. ``size``: of the file, bytes."""
    header = element(file, 0)
    if header is None or header.identity != EBML or header.size is None:
        return []
    segment = element(file, header.start + header.size)
    if segment is None or segment.identity != SEGMENT:
        return []
    stop = size if segment.size is None else min(size, segment.start + segment.size)
    for count, child in enumerate(_elements(file, segment.start, stop)):
        if child.identity == _TRACKS and child.size is not None:
            return list(_crops(file, child.start, min(stop, child.start + child.size)))
        if count >= _LONGEST:
            break
    return []


def _elements(file: BinaryIO, start: int, stop: int) -> Iterator[Element]:
    """The elements side by side in a part of a file, up to the first of unknown size."""
    while start < stop:
        found = element(file, start)
        if found is None:
            return
        yield found
        if found.size is None:
            return
        start = found.start + found.size


def _crops(file: BinaryIO, start: int, stop: int) -> Iterator[Crop | None]:
    for entry in _elements(file, start, stop):
        if entry.identity != _ENTRY or entry.size is None:
            continue
        fields = _numbers(file, entry)
        if fields.get(_TYPE) == _IS_VIDEO:
            width, height = fields.get(_WIDTH, 0), fields.get(_HEIGHT, 0)
            yield margins(width, height, *(fields.get(side, 0) for side in (_LEFT, _TOP, _RIGHT, _BOTTOM)))


def _numbers(file: BinaryIO, entry: Element, deeper: int | None = _VIDEO) -> dict[int, int]:
    """The short elements in one, and in those of the kind ``deeper`` within it, as unsigned integers."""
    found: dict[int, int] = {}
    for child in _elements(file, entry.start, entry.start + (entry.size or 0)):
        if child.identity == deeper:
            found |= _numbers(file, child, None)
        elif child.size is not None and child.size <= 8:
            file.seek(child.start)
            found[child.identity] = int.from_bytes(file.read(child.size), "big")
    return found
