"""Edit lists of MP4 and MOV (ISO/IEC 14496-12, 8.6.6) with gaps, held pictures or other speeds, which FFmpeg ignores.

FFmpeg follows edits that play parts of a track one after the other. So it is given a list of such edits alone, in place
of the file's own, and the times that come of it are stretched, or moved, to what the file's own list says.
"""

import struct
from bisect import bisect_right
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from foveate.pipeline.sources.boxes import Box, content, header_number, inside, track_number

_PLAIN: Final = 1.0
_ENTRIES: Final = (">IiI", ">QqI")  # by version: duration, media time, rate as 16.16 fixed point
_LONGEST: Final = (1 << 32) - 1, (1 << 64) - 1  # durations by version
_LARGEST: Final = 1 << 20  # bytes of an edit list; larger ones are ignored


class Edit(NamedTuple):
    """One entry. ``media``: where it begins in the track, in ticks of the track; -1 for a gap."""

    duration: int  # ticks of the movie
    media: int
    rate: float


class Segment(NamedTuple):
    """A span of FFmpeg's times, and what it is mapped to, in ticks of the track."""

    begin: int
    end: int
    target: int  # what ``begin`` becomes
    stretch: float  # ticks for each


class TimeMap:
    """Maps FFmpeg's times to those of the file's own edit list."""

    def __init__(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._begins = [segment.begin for segment in segments]

    def __call__(self, ticks: int) -> int:
        """The time by the edit list."""
        segment = self._of(ticks)
        return segment.target + round((ticks - segment.begin) * segment.stretch)

    def lasting(self, ticks: int, duration: int) -> int:
        """How long a picture is shown by the edit list that FFmpeg shows for ``duration`` from ``ticks`` on."""
        segment = self._of(ticks)
        return round((min(ticks + duration, segment.end) - ticks) * segment.stretch)

    def _of(self, ticks: int) -> Segment:
        return self._segments[max(bisect_right(self._begins, ticks) - 1, 0)]


class Rewritten(NamedTuple):
    """One track's edit list: what to read in its place, and how to map the times."""

    position: int  # bytes
    content: bytes  # as long as what it replaces
    times: TimeMap


class PatchedFile:
    """A file of which some bytes are replaced while it is read."""

    def __init__(self, path: Path, patches: list[Rewritten]) -> None:
        """Raises OSError."""
        self.name = str(path)
        self._patches = patches
        self._file = path.open("rb")
        self.seek, self.tell, self.close = self._file.seek, self._file.tell, self._file.close

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes."""
        start = self._file.tell()
        found = bytearray(self._file.read(size))
        for patch in self._patches:
            first, last = max(patch.position, start), min(patch.position + len(patch.content), start + len(found))
            if first < last:
                found[first - start : last - start] = patch.content[first - patch.position : last - patch.position]
        return bytes(found)


def rewritten_edits(file: BinaryIO, size: int) -> dict[int, Rewritten]:
    """A Rewritten for each track whose edit list FFmpeg ignores, by the track's number. ``size``: of the file, bytes.

    Raises ValueError, with the reason, for one that cannot be followed here either.
    """
    found: dict[int, Rewritten] = {}
    movie = next(inside(file, 0, size, b"moov"), None)
    if movie is None:
        return found
    scale = header_number(file, movie, b"mvhd")  # ticks per second (8.2.2)
    for track in inside(file, movie.start, movie.stop, b"trak"):
        place = next(inside(file, track.start, track.stop, b"edts", b"elst"), None)
        number, own = track_number(file, track), header_number(file, track, b"mdia", b"mdhd")
        if place is None or place.stop - place.start > _LARGEST or number is None or not scale or not own:
            continue
        edits, version = _parse(content(file, place))
        if not _is_followed(edits):
            found[number] = _rewritten(place, edits, version, scale, own)
    return found


def _parse(data: bytes) -> tuple[list[Edit], int]:
    """The entries of an edit list that are there, and its version."""
    version = 1 if data[:1] == b"\1" else 0
    form = struct.Struct(_ENTRIES[version])
    count = min(int.from_bytes(data[4:8], "big"), (len(data) - 8) // form.size)
    entries = [form.unpack_from(data, 8 + number * form.size) for number in range(count)]
    return [Edit(duration, media, _signed(rate) / 65536) for duration, media, rate in entries], version


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def _is_followed(edits: list[Edit]) -> bool:
    """Whether FFmpeg follows the list: no gaps after the first edit, and all edits play at normal speed.

    All players ignore the speed of a single edit: some writers leave it 0.
    """
    shown = [number for number, edit in enumerate(edits) if edit.media >= 0]
    if len(shown) < 1 or any(edit.duration == 0 for edit in edits):
        return True
    gaps = len(edits) - shown[0] != len(shown)
    speeds = {edits[number].rate for number in shown}
    return not gaps and (speeds == {_PLAIN} or (speeds == {0.0} and len(shown) == 1))


def _rewritten(place: Box, edits: list[Edit], version: int, scale: int, own: int) -> Rewritten:
    """``scale`` and ``own``: ticks per second of the movie and of the track."""
    if any(edit.rate < 0 for edit in edits):
        raise ValueError("its edit list plays it backwards, which is not supported; convert it to a plain video")
    kept: list[Edit] = []
    segments: list[Segment] = []
    begin = target = 0
    for edit in edits:
        lasts = round(edit.duration * own / scale)
        if edit.media >= 0:
            read = max(round(edit.duration * edit.rate), -(-scale // own))  # of a held picture one tick
            read = min(read, _LONGEST[version])
            length = round(read * own / scale)
            segments.append(Segment(begin, begin + length, target, lasts / length))
            kept.append(Edit(read, edit.media, _PLAIN))
            begin += length
        elif not segments:  # FFmpeg heeds what is empty before the first edit
            kept.append(edit)
            begin += lasts
        target += lasts
    return Rewritten(place.start, _written(kept, version, place.stop - place.start), TimeMap(segments))


def _written(edits: list[Edit], version: int, size: int) -> bytes:
    """An edit list of so many bytes."""
    entries = b"".join(struct.pack(_ENTRIES[version], edit.duration, edit.media, 65536) for edit in edits)
    return (bytes([version, 0, 0, 0]) + len(edits).to_bytes(4, "big") + entries).ljust(size, b"\0")
