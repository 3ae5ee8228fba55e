"""Parquet: one row per frame, the tokens' values as lists; needs pyarrow."""

import contextlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final

import numpy as np

from foveate.pipeline.errors import SinkError
from foveate.pipeline.extras import install_command
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, claim, part_of, place_of
from foveate.pipeline.sinks.format import Format
from foveate.pipeline.sinks.header import header_json
from foveate.pipeline.sinks.json_lines import four_decimals

ROWS_PER_GROUP: Final = 256  # frames held in memory; about 2 MB with 273 tokens each

_FRAME_TYPES: Final = {
    "index": "int64",
    "time": "float64",
    "width": "int32",
    "height": "int32",
    "keyframe": "bool_",
    "keyframe_reason": "string",
    "changed": "float64",
    "recomputed": "float64",
}
_TOKEN_TYPES: Final = {
    "x": "int32",
    "y": "int32",
    "lod": "uint8",
    "score": "float32",
    "information": "float32",
    "perspective": "float32",
    "participation": "float32",
    "age": "int32",
    "fresh": "bool_",
}


_SCORES: Final = frozenset({"score", "information", "perspective", "participation"})


class ParquetRows:
    """Writes one row per frame to an open file, whose end is written last; ``participation`` is null without a query.

    The header (docs/output-format.md) is JSON text under the file's metadata key ``foveate``. Scores are rounded to
    4 decimals, as in JSON lines.
    """

    def __init__(self, file: IO[bytes], header: Header, first: Mapping[str, str | int] | None = None) -> None:
        """``first`` are columns before the others, with what stands in every row. Raises ImportError, OSError."""
        import pyarrow  # type: ignore[import-untyped]  # it has no type marker
        import pyarrow.parquet  # type: ignore[import-untyped]

        self._arrow: Any = pyarrow
        self._first = dict(first or {})
        self._schema = _schema(pyarrow, header, self._first)
        self._writer: Any = pyarrow.parquet.ParquetWriter(file, self._schema)
        self._pending: list[dict[str, Any]] = []

    def add(self, selection: Selection) -> None:
        """Keep one row, and write the row group when it is full. Raises OSError."""
        self._pending.append({**self._first, **frame_row(selection)})
        if len(self._pending) >= ROWS_PER_GROUP:
            self._write_group()

    def finish(self) -> None:
        """Write the rows still held and the file's end; the file stays open. Raises OSError."""
        self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        rows, self._pending = self._pending, []
        if rows:
            self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))


class ParquetSink:
    """Writes one row per frame, without patches: see ParquetRows.

    A Parquet file is readable only with its end, so it appears under its name when it is closed; kill -9 and a full
    disk leave none. A stream without an end is rotated: each file is whole, and no more than the present one can be
    lost.
    """

    needs_patches = needs_heat = needs_query = False

    def __init__(self, path: str) -> None:
        self._path = place_of(path)
        self._file: Any = None
        self._rows: ParquetRows | None = None

    def open(self, header: Header) -> None:
        """Create the file. Raises SinkError, also where pyarrow is missing."""
        require_pyarrow(self._path)
        claim(self._path, header)
        try:
            self._file = part_of(self._path).open("wb")  # pyarrow's own files lose the error's number
            self._rows = ParquetRows(self._file, header)
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Keep one row, and write the row group when it is full. Raises SinkError."""
        assert self._rows is not None, "the sink is not open"
        with self._removed_on_error():
            self._rows.add(selection)

    def close(self) -> None:
        """Write the rows still held and the file's end, and give the file its name. Raises SinkError."""
        if self._rows is None:
            return
        with self._removed_on_error():
            self._rows.finish()
            self._file.close()
            part_of(self._path).replace(self._path)
        self._rows = None

    @property
    def written(self) -> int:
        """Bytes of the row groups written so far."""
        return int(self._file.tell())

    def takes(self, selection: Selection) -> bool:
        """Always: a file may hold any number of any records."""
        return True

    @contextlib.contextmanager
    def _removed_on_error(self) -> Iterator[None]:
        """Give up the file where it cannot be written: after a half row group it cannot be made whole."""
        try:
            yield
        except OSError as error:
            self._rows = None
            with contextlib.suppress(OSError):  # what it still holds cannot be written either
                self._file.close()
            part_of(self._path).unlink(missing_ok=True)
            raise cannot_write(self._path, error) from error


def require_pyarrow(place: Path | str) -> None:
    """Raise SinkError, for a file to be written at ``place``, where pyarrow is missing."""
    if find_spec("pyarrow") is None:
        raise SinkError(f"cannot write {place}: Parquet needs pyarrow: {install_command('parquet')}")


def _schema(arrow: ModuleType, header: Header, first: Mapping[str, str | int]) -> Any:
    fields = [(name, arrow.string() if isinstance(value, str) else arrow.int32()) for name, value in first.items()]
    fields += [(name, getattr(arrow, kind)()) for name, kind in _FRAME_TYPES.items()]
    fields += [(name, arrow.list_(getattr(arrow, kind)())) for name, kind in _TOKEN_TYPES.items()]
    if header.config.get("regions") is not None:
        fields += [("regions", arrow.list_(arrow.string())), ("region", arrow.list_(arrow.int32()))]
    return arrow.schema(fields, metadata={"foveate": header_json(header)})


def frame_row(selection: Selection) -> dict[str, Any]:
    """The values of one frame, by their columns."""
    row = {name: _value(selection, name) for name in (*_FRAME_TYPES, *_TOKEN_TYPES)}
    return row if selection.region is None else row | {"regions": selection.regions, "region": selection.region}


def _value(selection: Selection, name: str) -> Any:
    if name == "keyframe":
        return selection.keyframe is not None
    if name == "keyframe_reason":
        return selection.keyframe
    value = getattr(selection, name)
    return value if value is None or name not in _SCORES else four_decimals(value).astype(np.float32)


FORMAT: Final = Format(ParquetSink, seconds=3600.0)  # that may be lost; and its index grows in memory with the file
