"""Parquet: one row per frame, the tokens' values as lists; needs pyarrow."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, Final

from foveate.pipeline.errors import SinkError
from foveate.pipeline.frames import Frame
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, claim, part_of
from foveate.pipeline.sinks.header import header_json

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


class ParquetSink:
    """Writes one row per frame, without patches; ``participation`` is null without a query.

    The header of DESIGN section 8 is JSON text under the file's metadata key ``foveate``. A Parquet file is
    readable only with its end, so it appears under its name when it is closed; kill -9 leaves none.
    """

    needs_patches = False
    needs_heat = False

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._arrow: ModuleType | None = None
        self._writer: Any = None  # pyarrow.parquet.ParquetWriter
        self._schema: Any = None  # pyarrow.Schema
        self._pending: list[Selection] = []

    def open(self, header: Header) -> None:
        """Create the file. Raises SinkError, also where pyarrow is missing."""
        try:
            import pyarrow  # type: ignore[import-untyped]  # it has no type marker
            import pyarrow.parquet  # type: ignore[import-untyped]
        except ImportError as error:
            advice = 'pip install "foveate[parquet]"'
            raise SinkError(f"cannot write {self._path}: Parquet needs pyarrow; {advice}") from error
        claim(self._path, header)
        self._arrow = pyarrow
        self._schema = _schema(pyarrow, header)
        try:
            self._writer = pyarrow.parquet.ParquetWriter(part_of(self._path), self._schema)
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def write(self, frame: Frame, selection: Selection) -> None:
        """Keep one row, and write the row group when it is full. Raises SinkError."""
        self._pending.append(selection)
        if len(self._pending) >= ROWS_PER_GROUP:
            self._write_group()

    def close(self) -> None:
        """Write the rows still held and the file's end, and give the file its name. Raises SinkError."""
        if self._writer is None:
            return
        try:
            self._write_group()
            self._writer.close()
            part_of(self._path).replace(self._path)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        finally:
            self._writer = None
            part_of(self._path).unlink(missing_ok=True)

    def _write_group(self) -> None:
        assert self._arrow is not None, "the sink is not open"
        rows, self._pending = self._pending, []
        if not rows:
            return
        columns = {name: [_value(row, name) for row in rows] for name in self._schema.names}
        try:
            self._writer.write_table(self._arrow.table(columns, schema=self._schema))
        except OSError as error:
            raise cannot_write(self._path, error) from error


def _schema(arrow: ModuleType, header: Header) -> Any:
    fields = [(name, getattr(arrow, kind)()) for name, kind in _FRAME_TYPES.items()]
    fields += [(name, arrow.list_(getattr(arrow, kind)())) for name, kind in _TOKEN_TYPES.items()]
    return arrow.schema(fields, metadata={"foveate": header_json(header)})


def _value(selection: Selection, name: str) -> Any:
    if name == "keyframe":
        return selection.keyframe is not None
    if name == "keyframe_reason":
        return selection.keyframe
    return getattr(selection, name)
