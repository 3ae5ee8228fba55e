"""The boxes of MP4, MOV and HEIF files (ISO/IEC 14496-12, 4.2), and the cropping that they declare."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeVar

from foveate.pipeline.sources.cropping import Crop, clean_aperture

_SAMPLE_ENTRY: Final = 78  # bytes of a visual sample entry before the boxes in it (12.1.3)
_TO_SAMPLES: Final = (b"mdia", b"minf", b"stbl", b"stsd")


T = TypeVar("T")


class Box(NamedTuple):
    """A box: its kind, and where its content begins and ends in the file."""

    kind: bytes
    start: int
    stop: int


def in_file(path: Path, read: Callable[[BinaryIO, int], T]) -> T | None:
    """What ``read`` finds in a file, given it and its size in bytes; None for a pipe or a device, and where none is.

    Raises OSError, and what ``read`` raises.
    """
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return read(file, path.stat().st_size)


def boxes(file: BinaryIO, start: int, stop: int) -> Iterator[Box]:
    """The boxes that lie side by side in a part of a file, up to the first that is none."""
    while start + 8 <= stop:
        file.seek(start)
        head = file.read(16)
        size, content = int.from_bytes(head[:4], "big"), 8
        if size == 1:
            size, content = int.from_bytes(head[8:16], "big"), 16
        elif size == 0:
            size = stop - start
        if size < content:
            return
        yield Box(head[4:8], start + content, min(start + size, stop))
        start += size


def inside(file: BinaryIO, start: int, stop: int, *kinds: bytes) -> Iterator[Box]:
    """All boxes of the last of ``kinds`` that lie in one of the kind before, and so on."""
    for box in boxes(file, start, stop):
        if box.kind == kinds[0]:
            yield from inside(file, box.start, box.stop, *kinds[1:]) if kinds[1:] else (box,)


def movies(file: BinaryIO, size: int) -> list[int]:
    """Where the movies begin that were written one after another into one file; one or none, unless files were joined.

    ``size``: of the file, bytes.
    """
    begins: list[int] = []
    complete = True
    for box in boxes(file, 0, size):
        if box.kind == b"ftyp" and complete:
            begins.append(box.start - 8)
            complete = False
        elif not begins:
            break
        complete |= box.kind == b"moov"
    return begins


def content(file: BinaryIO, box: Box) -> bytes:
    """What is in a box."""
    file.seek(box.start)
    return file.read(box.stop - box.start)


def track_crop(file: BinaryIO, size: int, track: int) -> Crop | None:
    """The clean aperture of the track with a number, None if it has none. ``size``: of the file, bytes."""
    for movie in inside(file, 0, size, b"moov", b"trak"):
        if track_number(file, movie) == track:
            description = next(inside(file, movie.start, movie.stop, *_TO_SAMPLES), None)
            return None if description is None else _described_crop(file, description)
    return None


def track_number(file: BinaryIO, track: Box) -> int | None:
    """The number of a track, from its header (8.3.2); None where there is none."""
    return header_number(file, track, b"tkhd")


def header_number(file: BinaryIO, parent: Box, *kinds: bytes) -> int | None:
    """The number behind the two times of a header box, which have 32 bits each or, in version 1, 64 bits.

    ``kinds`` lead from ``parent`` to the header; None where there is none.
    """
    header = next(inside(file, parent.start, parent.stop, *kinds), None)
    if header is None:
        return None
    data = content(file, header)
    at = 20 if data[:1] == b"\1" else 12
    return int.from_bytes(data[at : at + 4], "big")


def _described_crop(file: BinaryIO, description: Box) -> Crop | None:
    """The clean aperture of the first entry of a sample description (8.5.2)."""
    entry = next(boxes(file, description.start + 8, description.stop), None)
    if entry is None:
        return None
    file.seek(entry.start)
    fields = file.read(_SAMPLE_ENTRY)
    width, height = (int.from_bytes(fields[at : at + 2], "big") for at in (24, 26))
    aperture = next(inside(file, entry.start + _SAMPLE_ENTRY, entry.stop, b"clap"), None)
    return None if aperture is None else clean_aperture(content(file, aperture), width, height)
