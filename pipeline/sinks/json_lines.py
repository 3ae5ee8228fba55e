"""JSON lines: a header, then one object per frame; whole lines only, at any moment."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from foveate.pipeline.errors import SinkError
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import STANDARD_OUTPUT, cannot_write, hold, refuse_source
from foveate.pipeline.sinks.format import Format
from foveate.pipeline.sinks.header import header_json

_STANDARD_OUTPUT_DESCRIPTOR: Final = 1
_STANDARD_ERROR_DESCRIPTOR: Final = 2
_BLOCK: Final = 65_536  # bytes read at a time from the end of a file


class JsonLinesSink:
    """Writes JSON lines to a file, or to standard output where the path is ``-``; what else is printed there meanwhile,
    as some decoders do, goes to standard error.

    Each line is handed to the operating system in one call, so the file is valid up to its last whole line even
    after kill -9. A reader that went away is reported as BrokenPipeError, for the caller to end quietly.
    """

    needs_patches = needs_heat = needs_query = False

    def __init__(self, path: str) -> None:
        self.name = "standard output" if path == STANDARD_OUTPUT else path
        self._path = None if path == STANDARD_OUTPUT else Path(path)
        self._descriptor: int | None = None
        self._whole = 0  # bytes up to the end of the last whole line
        self._size = (0, 0)

    def open(self, header: Header) -> None:
        """Create the file and write the header. Raises SinkError, BrokenPipeError."""
        self._size, self._whole = (header.width, header.height), 0
        self._descriptor = _standard_output() if self._path is None else _created(self._path, header)
        try:
            self._write_line(header_json(header))
        except BaseException:
            with contextlib.suppress(SinkError):
                self.close()
            raise

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Write one record. Raises SinkError, BrokenPipeError."""
        self._write_line(orjson.dumps(record_of(selection, self._size), option=orjson.OPT_SERIALIZE_NUMPY))

    @property
    def written(self) -> int:
        """Bytes written so far."""
        return self._whole

    def takes(self, selection: Selection) -> bool:
        """Always: a file may hold any number of any records."""
        return True

    def close(self) -> None:
        """Close the file; standard output stays open. Raises SinkError."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            if self._path is None:
                os.dup2(descriptor, _STANDARD_OUTPUT_DESCRIPTOR)
            os.close(descriptor)
        except OSError as error:
            raise cannot_write(self.name, error) from error

    def _write_line(self, line: bytes) -> None:
        assert self._descriptor is not None, "the sink is not open"
        rest = memoryview(line + b"\n")
        length = len(rest)
        try:
            while rest:  # a disk that is almost full, or a pipe, takes only a part
                rest = rest[os.write(self._descriptor, rest) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            with contextlib.suppress(OSError):  # pipes and devices cannot be cut
                os.ftruncate(self._descriptor, self._whole)
            raise cannot_write(self.name, error) from error
        self._whole += length


def record_of(selection: Selection, size: tuple[int, int]) -> dict[str, Any]:
    """One frame's record, in the order in which it is written; for orjson with OPT_SERIALIZE_NUMPY.

    ``size`` is the header's (width, height): a record carries its own only where it differs. Scores have at most
    4 decimals, times and shares 6. Seconds, level-0 pixels, age in frames.
    """
    record: dict[str, Any] = {"index": selection.index, "time": round(selection.time, 6)}
    if (selection.width, selection.height) != size:
        record |= {"width": selection.width, "height": selection.height}
    record["keyframe"] = selection.keyframe is not None
    if selection.keyframe is not None:
        record["keyframe_reason"] = selection.keyframe
    record |= {
        "changed": round(float(selection.changed), 6),
        "recomputed": round(float(selection.recomputed), 6),
        "x": np.ascontiguousarray(selection.x),
        "y": np.ascontiguousarray(selection.y),
        "lod": np.ascontiguousarray(selection.lod),
        "score": four_decimals(selection.score),
        "information": four_decimals(selection.information),
        "perspective": four_decimals(selection.perspective),
    }
    if selection.participation is not None:
        record["participation"] = four_decimals(selection.participation)
    record |= {"age": np.ascontiguousarray(selection.age), "fresh": np.ascontiguousarray(selection.fresh)}
    if selection.region is not None:
        record |= {"regions": list(selection.regions), "region": np.ascontiguousarray(selection.region)}
    assert not record.keys() & selection.extras.keys(), "an extra bears the name of a field"
    return record | dict(selection.extras)


def read_json_lines(path: str | Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The header and an iterator of the records of a JSON lines file; a last half line is passed over.

    Raises ValueError where even the header is not whole, or is none, OSError where the file cannot be read.

    >>> with open_stream("clip.mp4", sinks=[open_sink("tokens.jsonl")], source={"frames": 3}) as stream:
    ...     selections = list(stream)
    >>> header, records = read_json_lines("tokens.jsonl")
    >>> header["width"], [record["index"] for record in records]
    (768, [0, 1, 2])
    """
    with Path(path).open("rb") as file:
        first = file.readline()
    if not first.endswith(b"\n"):
        raise ValueError(f"{path} must begin with a whole header line, got {len(first)} bytes")
    try:
        header = orjson.loads(first)
    except ValueError:
        header = None
    if not isinstance(header, dict) or "foveate" not in header:
        raise ValueError(f"{path} must begin with the header of Foveate's JSON lines; it is another file")
    return header, _records(Path(path))


def whole_records(path: Path) -> bool:
    """Cut a half line off the end of a file. Returns whether there is a record, a line behind the first.

    Raises OSError, and SinkError where another program is writing it.
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
        return sum(1 for _ in zip(range(2), file, strict=False)) > 1


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        file.readline()
        for line in file:
            if line.endswith(b"\n"):
                yield orjson.loads(line)


def four_decimals(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scores as outputs hold them.

    Rounded as float64: the shortest text of a rounded float32 would have up to 9 decimals.
    """
    return np.rint(values.astype(np.float64, order="C") * 1e4) / 1e4


def _created(path: Path, header: Header) -> int:
    refuse_source(path, header)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        hold(descriptor, path)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _standard_output() -> int:
    """A descriptor of it for the records alone, with what was printed before flushed ahead of them."""
    if sys.stdout is None:
        raise SinkError("cannot write standard output: it is closed; redirect it or name a file")
    sys.stdout.flush()
    os.set_blocking(_STANDARD_OUTPUT_DESCRIPTOR, True)  # a shared pipe may have been left non-blocking
    own = os.dup(_STANDARD_OUTPUT_DESCRIPTOR)
    with contextlib.suppress(OSError):  # closed
        os.dup2(_STANDARD_ERROR_DESCRIPTOR, _STANDARD_OUTPUT_DESCRIPTOR)
    return own


FORMAT: Final = Format(JsonLinesSink, whole_records)
