"""Outputs without an end: whole files are set aside by size or age, and nothing written before is lost."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, place_of, refuse_source
from foveate.pipeline.sinks.format import Format

_NUMBER: Final = re.compile("[0-9]{6}|[1-9][0-9]{6}")  # more digits are a date, and the file is not one of these


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is set aside, and how many of those are kept; None: never, or all.

    >>> hourly = Rotation(seconds=3600, keep=48)
    >>> sink = open_sink("hours.jsonl", hourly)
    """

    size: int | None = None  # bytes
    seconds: float | None = None
    keep: int | None = None


class RotatingSink:
    """Writes to ``tokens.jsonl``, and sets it aside as ``tokens-000001.jsonl`` and so on.

    Every file is whole in itself, with a header. A file found at the start is set aside as well; one without a record
    is written over. Where the path is a link, all this happens where it leads. A file is set aside when the record
    comes that does not belong to it any more.
    """

    def __init__(self, path: str, rotation: Rotation, form: Format, now: Callable[[], float] = time.monotonic) -> None:
        self._path = place_of(path)
        self._format = form
        self._keep = rotation.keep
        self._size = min((size for size in (rotation.size, form.size) if size is not None), default=None)
        by_itself = rotation.size is None and rotation.seconds is None
        self._seconds = form.seconds if by_itself else rotation.seconds
        self._now = now
        self._header: Header | None = None
        self._part = form.part(str(self._path))
        self._open = False
        self._records = 0  # in the present file
        self._began = 0.0
        self.needs_patches = self._part.needs_patches
        self.needs_heat = self._part.needs_heat
        self.needs_query = self._part.needs_query

    def open(self, header: Header) -> None:
        """Set aside what an earlier run left, and begin a file. Raises SinkError."""
        refuse_source(self._path, header)
        self._header = header
        try:
            if self._path.is_file() and self._format.worth_keeping(self._path):
                self._set_aside()
        except OSError as error:
            raise cannot_write(self._path, error) from error
        self._begin()

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Write one record, to a new file where the present one is full. Raises SinkError."""
        assert self._open, "the sink is not open"
        if self._records > 0 and (self._due() or not self._part.takes(selection)):
            self.close()
            try:
                self._set_aside()
            except OSError as error:
                raise cannot_write(self._path, error) from error
            self._begin()
        self._part.write(frame, selection)
        self._records += 1

    def close(self) -> None:
        """Close the present file. Raises SinkError."""
        if self._open:
            self._open = False
            self._part.close()

    def _begin(self) -> None:
        assert self._header is not None
        self._part.open(self._header)
        self._open = True
        self._records, self._began = 0, self._now()

    def _due(self) -> bool:
        full = self._size is not None and self._part.written >= self._size
        return full or (self._seconds is not None and self._now() - self._began >= self._seconds)

    def _set_aside(self) -> None:
        earlier = set_aside(self._path)
        number = earlier[-1][0] + 1 if earlier else 1
        self._path.rename(self._path.with_stem(f"{self._path.stem}-{number:06d}"))
        if self._keep is not None:
            for _, path in earlier[: max(0, len(earlier) + 1 - self._keep)]:
                path.unlink(missing_ok=True)


def set_aside(path: Path) -> list[tuple[int, Path]]:
    """The files of ``path`` that were set aside so far, with their numbers, the oldest first."""
    before, after = f"{path.stem}-", path.suffix
    found = []
    for each in path.parent.iterdir():
        number = each.name.removeprefix(before).removesuffix(after)
        if each.name == f"{before}{number}{after}" and _NUMBER.fullmatch(number):
            found.append((int(number), each))
    return sorted(found)
