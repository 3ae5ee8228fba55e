"""Parquet: one row per frame, the tokens' values as lists; needs pyarrow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from foveate.pipeline.errors import SinkError
from foveate.pipeline.extras import install_command
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, claim, part_of, place_of
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

    The header (docs/output-format.md) is JSON text under the file's metadata key ``foveate``. A Parquet file is
    readable only with its end, so it appears under its name when it is closed; kill -9 and a full disk leave none. A
    stream without an end is rotated: each file is whole, and no more than the present one can be lost.
    """

    needs_patches = False
    needs_heat = False

    def __init__(self, path: str) -> None:
        self._path = place_of(path)
        self._arrow: Any = None  # the module
        self._file: Any = None
        self._writer: Any = None  # pyarrow.parquet.ParquetWriter
        self._schema: Any = None  # pyarrow.Schema
        self._pending: list[dict[str, Any]] = []

    def open(self, header: Header) -> None:
        """Create the file. Raises SinkError, also where pyarrow is missing."""
        try:
            import pyarrow  # type: ignore[import-untyped]  # it has no type marker
            import pyarrow.parquet  # type: ignore[import-untyped]
        except ImportError as error:
            advice = install_command("parquet")
            raise SinkError(f"cannot write {self._path}: Parquet needs pyarrow: {advice}") from error
        claim(self._path, header)
        self._arrow = pyarrow
        self._schema = _schema(pyarrow, header)
        try:
            self._file = part_of(self._path).open("wb")  # pyarrow's own files lose the error's number
            self._writer = pyarrow.parquet.ParquetWriter(self._file, self._schema)
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Keep one row, and write the row group when it is full. Raises SinkError."""
        self._pending.append({name: _value(selection, name) for name in self._schema.names})
        if len(self._pending) >= ROWS_PER_GROUP:
            self._write_group()

    def close(self) -> None:
        """Write the rows still held and the file's end, and give the file its name. Raises SinkError."""
        if self._writer is None:
            return
        self._write_group()
        with self._removed_on_error():
            self._writer.close()
            self._file.close()
            part_of(self._path).replace(self._path)
        self._writer = None

    @property
    def written(self) -> int:
        """Bytes of the row groups written so far."""
        return int(self._file.tell())

    def takes(self, selection: Selection) -> bool:
        """Always: a file may hold any number of any records."""
        return True

    def _write_group(self) -> None:
        rows, self._pending = self._pending, []
        if not rows:
            return
        with self._removed_on_error():
            self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))

    @contextlib.contextmanager
    def _removed_on_error(self) -> Iterator[None]:
        """Give up the file where it cannot be written: after a half row group it cannot be made whole."""
        try:
            yield
        except OSError as error:
            self._writer = None
            with contextlib.suppress(OSError):  # what it still holds cannot be written either
                self._file.close()
            part_of(self._path).unlink(missing_ok=True)
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
