"""JSON lines without an end: whole files are set aside by size or age, and nothing written before is lost."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, hold, refuse_source
from foveate.pipeline.sinks.json_lines import JsonLinesSink

_NUMBER = re.compile("[0-9]{6}|[1-9][0-9]{6}")  # more digits are a date: no file of ours
_BLOCK = 65_536  # bytes read at a time from the end of a file


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file is set aside, and how many of those are kept; None: never, and all."""

    size: int | None = None  # bytes
    seconds: float | None = None
    keep: int | None = None


class RotatingLinesSink:
    """Writes JSON lines to ``tokens.jsonl``, and sets it aside as ``tokens-000001.jsonl`` and so on.

    Every file is whole in itself, with a header. A file found at the start is set aside as well, a half last line cut
    off; one without a record is written over.
    """

    needs_patches = False
    needs_heat = False

    def __init__(self, path: str, rotation: Rotation, now: Callable[[], float] = time.monotonic) -> None:
        self._path = Path(path)
        self._rotation = rotation
        self._now = now
        self._header: Header | None = None
        self._lines: JsonLinesSink | None = None
        self._began = 0.0

    def open(self, header: Header) -> None:
        """Set aside what an earlier run left, and begin a file. Raises SinkError."""
        refuse_source(self._path, header)
        self._header = header
        try:
            if self._path.is_file() and _cut_to_whole_lines(self._path) > 1:
                self._set_aside()
        except OSError as error:
            raise cannot_write(self._path, error) from error
        self._begin()

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Write one record, to a new file where the present one is full. Raises SinkError."""
        assert self._lines is not None, "the sink is not open"
        if self._due(self._lines):
            self.close()
            try:
                self._set_aside()
            except OSError as error:
                raise cannot_write(self._path, error) from error
            self._begin()
        self._lines.write(frame, selection)

    def close(self) -> None:
        """Close the present file. Raises SinkError."""
        lines, self._lines = self._lines, None
        if lines is not None:
            lines.close()

    def _begin(self) -> None:
        assert self._header is not None
        self._lines = JsonLinesSink(str(self._path))
        self._lines.open(self._header)
        self._began = self._now()

    def _due(self, lines: JsonLinesSink) -> bool:
        size, seconds = self._rotation.size, self._rotation.seconds
        full = size is not None and lines.written >= size
        return lines.records > 0 and (full or (seconds is not None and self._now() - self._began >= seconds))

    def _set_aside(self) -> None:
        earlier = self._earlier()
        number = earlier[-1][0] + 1 if earlier else 1
        self._path.rename(self._path.with_stem(f"{self._path.stem}-{number:06d}"))
        if self._rotation.keep is not None:
            for _, path in earlier[: max(0, len(earlier) + 1 - self._rotation.keep)]:
                path.unlink(missing_ok=True)

    def _earlier(self) -> list[tuple[int, Path]]:
        """The files set aside so far, by number."""
        before, after = f"{self._path.stem}-", self._path.suffix
        found = []
        for path in self._path.parent.iterdir():
            number = path.name.removeprefix(before).removesuffix(after)
            if path.name == f"{before}{number}{after}" and _NUMBER.fullmatch(number):
                found.append((int(number), path))
        return sorted(found)


def _cut_to_whole_lines(path: Path) -> int:
    """Cut a half line off the end of a file. Returns how many lines it has, at most 2 counted.

    Raises SinkError where another program is writing it.
    """
    with path.open("r+b") as file:
        hold(file.fileno(), path)
        end = whole = file.seek(0, os.SEEK_END)
        while whole > 0:
            begin = max(0, whole - _BLOCK)
            file.seek(begin)
            found = file.read(whole - begin).rfind(b"\n")
            if found >= 0:
                whole = begin + found + 1
                break
            whole = begin
        if whole < end:
            file.truncate(whole)
        file.seek(0)
        return sum(1 for _ in zip(range(2), file, strict=False))
