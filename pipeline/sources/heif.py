"""The primary picture of HEIF files (HEIC, AVIF): its tiles, cropping and orientation (ISO/IEC 23008-12)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from foveate.pipeline.sources.boxes import Box, boxes, content, inside
from foveate.pipeline.sources.cropping import Crop, Geometry, clean_aperture
from foveate.pipeline.sources.orientation import UPRIGHT, Orientation, mirrored, turned

_FULL, _LIMITED = 2, 1  # AVCOL_RANGE_JPEG, AVCOL_RANGE_MPEG


@dataclass(frozen=True, slots=True)
class Still:
    """The primary picture of a file."""

    kind: str  # of the item: "hvc1", "av01"; "grid" where it is made of tiles
    tiles: tuple[int, ...]  # identities of the items that it is made of, row by row
    width: int  # pixels, before it is cropped or turned; 0 if unknown
    height: int
    geometry: Geometry
    colour: tuple[int, int] | None  # matrix (ISO/IEC 23091-2) and range (FFmpeg's), if stated here


class _Property(NamedTuple):
    kind: bytes
    data: bytes


class _Numbers:
    """Reads unsigned integers from bytes, one after the other; 0 after their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def next(self, size: int) -> int:
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "big")

    def version(self) -> tuple[int, int]:
        """The version and the flags with which many boxes begin."""
        return self.next(1), self.next(3)


def still_of(file: BinaryIO, size: int) -> Still | None:
    """The picture of a HEIF file of ``size`` bytes; None for films, those made of such pictures included."""
    parts: dict[bytes, Box] = {}
    for box in boxes(file, 0, size):
        parts[box.kind] = box
        if next(iter(parts)) != b"ftyp" or box.kind == b"moov":
            return None
    if b"meta" not in parts:
        return None
    meta = {box.kind: box for box in boxes(file, parts[b"meta"].start + 4, parts[b"meta"].stop)}
    if b"pitm" not in meta:
        return None
    numbers = _Numbers(content(file, meta[b"pitm"]))
    item = numbers.next(4 if numbers.version()[0] else 2)
    properties = _properties(file, meta[b"iprp"], item) if b"iprp" in meta else []
    kind = _kind(file, meta[b"iinf"], item) if b"iinf" in meta else ""
    tiles = _parts(file, meta[b"iref"], item) if b"iref" in meta else ()
    return _described(kind, tiles, properties)


def _described(kind: str, tiles: tuple[int, ...], properties: list[_Property]) -> Still:
    width = height = 0
    crop: Crop | None = None
    colour: tuple[int, int] | None = None
    orientation = UPRIGHT
    for name, data in properties:
        if name == b"ispe":
            width, height = (int.from_bytes(data[at : at + 4], "big") for at in (4, 8))
        elif name == b"clap":
            crop = clean_aperture(data, width, height)
        elif name == b"colr" and data[:4] == b"nclx" and len(data) > 10:
            colour = int.from_bytes(data[8:10], "big"), _FULL if data[10] & 0x80 else _LIMITED
        else:
            orientation = _oriented(orientation, name, data)
    return Still(kind, tiles, width, height, Geometry(crop, orientation), colour)


def _oriented(before: Orientation, name: bytes, data: bytes) -> Orientation:
    """What a property makes of an orientation: ``irot`` by quarter turns, ``imir`` by its axis (6.5.10, 6.5.12)."""
    if name == b"irot" and data:
        return turned(before, data[0] & 3)
    return mirrored(before, left_right=bool(data[0] & 1)) if name == b"imir" and data else before


def _kind(file: BinaryIO, infos: Box, item: int) -> str:
    """The type of an item, "" where it is not listed (ISO/IEC 14496-12, 8.11.6)."""
    entries = infos.start + (8 if content(file, infos)[:1] != b"\0" else 6)
    for entry in inside(file, entries, infos.stop, b"infe"):
        data = content(file, entry)
        numbers = _Numbers(data)
        wide = numbers.version()[0] > 2
        if numbers.next(4 if wide else 2) == item:
            start = 10 if wide else 8
            return data[start : start + 4].decode("ascii", "replace")
    return ""


def _parts(file: BinaryIO, references: Box, item: int) -> tuple[int, ...]:
    """The items that one is derived from, in their order (ISO/IEC 14496-12, 8.11.12)."""
    size = 4 if content(file, references)[:1] != b"\0" else 2
    for entry in inside(file, references.start + 4, references.stop, b"dimg"):
        numbers = _Numbers(content(file, entry))
        if numbers.next(size) == item:
            return tuple(numbers.next(size) for _ in range(numbers.next(2)))
    return ()


def _properties(file: BinaryIO, properties: Box, item: int) -> list[_Property]:
    """The properties of an item, in the order in which they count (9.3)."""
    known = [_Property(box.kind, content(file, box)) for box in _of(file, properties, b"ipco")]
    found = []
    for links in inside(file, properties.start, properties.stop, b"ipma"):
        numbers = _Numbers(content(file, links))
        version, flags = numbers.version()
        for _ in range(min(numbers.next(4), links.stop - links.start)):
            mine = numbers.next(4 if version else 2) == item
            for _ in range(numbers.next(1)):
                index = numbers.next(2) & 0x7FFF if flags & 1 else numbers.next(1) & 0x7F
                if mine and 0 < index <= len(known):
                    found.append(known[index - 1])
    return found


def _of(file: BinaryIO, around: Box, kind: bytes) -> Iterator[Box]:
    """What is in the boxes of a kind within one."""
    for box in inside(file, around.start, around.stop, kind):
        yield from boxes(file, box.start, box.stop)
