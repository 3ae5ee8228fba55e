"""Edit lists with gaps, held pictures and other speeds (ISO/IEC 14496-12, 8.6.6).

What is expected was worked out by hand. The track counts 600 ticks a second, 20 for each picture; the
movie counts 1,000.
"""

import struct
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from tests.pipeline.heif_files import box
from tests.pipeline.numbered import coded, number

Entry = tuple[int, int, float]  # duration in ticks of the movie, media time in ticks of the track, rate
SHOT = Fraction(1, 30)


def edit_box(entries: tuple[Entry, ...], version: int) -> bytes:
    form = ">QqI" if version else ">IiI"
    packed = [struct.pack(form, length, media, round(rate * 65536) & 0xFFFFFFFF) for length, media, rate in entries]
    return box(b"edts", box(b"elst", bytes([version, 0, 0, 0]), struct.pack(">I", len(entries)), *packed))


def changed(data: bytes, path: tuple[bytes, ...], change: Callable[[bytes], bytes]) -> bytes:
    """``data`` with the content of the first box at ``path`` changed."""
    out, at, done = b"", 0, False
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == path[0] and not done:
            body, done = data[at + 8 : at + size], True
            out += box(kind, change(body) if len(path) == 1 else changed(body, path[1:], change))
        else:
            out += data[at : at + size]
        at += size
    return out


@cache
def plain(options: tuple[object, ...]) -> bytes:
    """A MOV of 90 pictures, three seconds; its index comes last, so that no place in it moves."""
    with TemporaryDirectory() as folder:
        return coded(Path(folder) / "plain.mov", "-video_track_timescale", 600, *options, count=90).read_bytes()


def edited(folder: Path, *entries: Entry, version: int = 0, options: tuple[object, ...] = ("-g", 10)) -> Path:
    """Such a MOV with an edit list of one's own."""

    def rewrite(track: bytes) -> bytes:
        out, at = b"", 0
        while at < len(track):
            size, kind = struct.unpack_from(">I4s", track, at)
            out += b"" if kind == b"edts" else track[at : at + size]
            out += edit_box(entries, version) if kind == b"tkhd" else b""
            at += size
        return out

    path = folder / "edited.mov"
    path.write_bytes(changed(plain(options), (b"moov", b"trak"), rewrite))
    return path


def shown(path: Path) -> list[tuple[int, float]]:
    """The number and time of each picture."""
    source = open_source(str(path), SourceSettings())
    found = [(number(frame), frame.time) for frame in source]
    source.close()
    assert source.damage.frames == 0
    return found


def played(first: int, count: int, begin: float = 0.0, speed: float = 1.0) -> list[tuple[int, float]]:
    return [(first + n, begin + float(n * SHOT) / speed) for n in range(count)]


CASES = {
    "in another order": ([(1000, 1200, 1), (1000, 0, 1)], played(60, 30) + played(0, 30, 1.0)),
    "a gap": ([(1000, 1200, 1), (500, -1, 1), (1000, 0, 1)], played(60, 30) + played(0, 30, 1.5)),
    "a beginning and a gap": (
        [(700, -1, 1), (1000, 600, 1), (250, -1, 1), (250, -1, 1), (500, 0, 1)],
        played(30, 30) + played(0, 15, 1.5),
    ),
    "a held picture": (
        [(1000, 0, 1), (1000, 600, 0), (1000, 600, 1)],
        [*played(0, 30), (30, 1.0), *played(30, 30, 2.0)],
    ),
    "half the speed": ([(2000, 0, 0.5)], played(0, 30, 0.0, 0.5)),
    "slower and slower": ([(1000, 0, 1), (2000, 600, 0.5)], played(0, 30) + played(30, 30, 1.0, 0.5)),
    "twice the speed": (
        [(1000, 0, 1), (500, 600, 2), (1000, 1200, 1)],
        played(0, 30) + played(30, 30, 1.0, 2.0) + played(60, 30, 1.5),
    ),
    "a lone speed of 0": ([(2000, 600, 0)], played(30, 60)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", [0, 1])
def test_pictures_come_at_the_times_of_the_edit_list(tmp_path: Path, case: str, version: int) -> None:
    entries, expected = CASES[case]
    found = shown(edited(tmp_path, *entries, version=version))
    assert [n for n, _ in found] == [n for n, _ in expected]
    assert [seconds for _, seconds in found] == pytest.approx([seconds for _, seconds in expected], abs=1.1 / 600)


def test_pictures_that_are_stored_in_another_order(tmp_path: Path) -> None:
    reordered = ("-bf", 2, "-g", 30)
    found = shown(edited(tmp_path, (1000, 1240, 1), (500, -1, 1), (1000, 40, 1), options=reordered))
    assert [n for n, _ in found] == [*range(60, 90), *range(30)]
    assert found[30][1] == pytest.approx(1.5, abs=1.1 / 600)


def test_sampling_goes_by_the_same_times(tmp_path: Path) -> None:
    path = edited(tmp_path, (1000, 0, 1), (1000, 600, 0), (1000, 600, 1))
    source = open_source(str(path), SourceSettings(start=1.5, fps=2))
    assert [(number(frame), frame.time) for frame in source] == [(30, 1.0), (30, 2.0), (45, 2.5)]
    source.close()


def test_what_plays_backwards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="plays it backwards"):
        open_source(str(edited(tmp_path, (1000, 0, 1), (1000, 600, -1))), SourceSettings())
