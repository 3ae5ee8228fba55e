"""The frames of one job in one file: rows of Parquet, or samples of WebDataset."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, Protocol

import numpy as np
import orjson

from foveate.pipeline.corpus.jobs import Job, Task
from foveate.pipeline.errors import SinkError
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import cannot_write
from foveate.pipeline.sinks.header import header_json
from foveate.pipeline.sinks.json_lines import record_of
from foveate.pipeline.sinks.parquet import ParquetRows

_LOG: Final = logging.getLogger("foveate")
_HEADER: Final = "__foveate__/header.json"  # readers of WebDataset pass over such names


class FrameFile:
    """The sink of a job, which writes to one file; counts frames, tokens and bytes, and their SHA-256."""

    needs_heat = False
    needs_query = False

    def __init__(self, job: Job, task: Task, file: Callable[[], IO[bytes]], name: str, first: int = 0) -> None:
        """``file`` opens the file, whose ``name`` is for messages; frames before number ``first`` are passed over."""
        self.needs_patches = task.kind == "webdataset"
        self._job, self._name, self._first = job, name, first
        self.frames = self.tokens = 0  # written so far
        self._opens, self._file = file, Hashed()
        self._rows: Rows | None = None

    def open(self, header: Header) -> None:
        """See Sink."""
        first: dict[str, str | int] = {"video": self._job.video, "segment": self._job.segment or 0}
        self._file.begin(self._opens())
        with self._reporting():
            if self.needs_patches:
                self._rows = Samples(self._file, header, first, self._job.key)
            else:
                self._rows = ParquetRows(self._file, header, first)  # type: ignore[arg-type]  # it writes, and no more

    def write(self, frame: FrameView, selection: Selection) -> None:
        """See Sink."""
        assert self._rows is not None, "the sink is not open"
        if selection.index < self._first:
            return
        if not self.frames:
            _LOG.debug("%s: first frame", self._job.key)
        with self._reporting():
            self._rows.add(selection)
        self.frames, self.tokens = self.frames + 1, self.tokens + len(selection)

    def close(self) -> None:
        """See Sink."""
        if self._rows is not None:
            with self._reporting():
                self._rows.finish()

    @property
    def bytes(self) -> int:
        """Written so far."""
        return self._file.tell()

    @property
    def sha256(self) -> str:
        """Of what was written so far, as hexadecimal digits."""
        return self._file.sha256.hexdigest()

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            raise SinkError(f"cannot write {self._name}: {error}") from error
        except OSError as error:
            raise cannot_write(self._name, error) from error


class Rows(Protocol):
    """Writes frames to a file, whose end is written last."""

    def add(self, selection: Selection) -> None:
        """Write one frame. Raises OSError."""

    def finish(self) -> None:
        """Write the file's end; it stays open. Raises OSError."""


class Samples:
    """Writes a tar with two members for each frame, as WebDataset reads them.

    ``KEY-INDEX.json`` is the record of the frame, as in JSON lines, with video and segment; ``KEY-INDEX.patches.npy``
    is uint8[tokens, 16, 16, 3], R'G'B'. The header comes first. Members bear no times and no owners.
    """

    def __init__(self, file: Hashed, header: Header, first: dict[str, str | int], key: str) -> None:
        self._key = key.replace(".", "_")  # for WebDataset a name ends at its first dot
        self._tar = tarfile.open(fileobj=file, mode="w|")  # noqa: SIM115 - closed by finish
        self._first, self._size = first, (header.width, header.height)
        self._add(_HEADER, header_json(header))

    def add(self, selection: Selection) -> None:
        """See Rows."""
        assert selection.patches is not None, "the selection holds no patches"
        record = {**self._first, **record_of(selection, self._size)}
        patches = io.BytesIO()
        np.save(patches, np.ascontiguousarray(selection.patches))
        name = f"{self._key}-{selection.index:09d}"
        self._add(f"{name}.json", orjson.dumps(record, option=orjson.OPT_SERIALIZE_NUMPY))
        self._add(f"{name}.patches.npy", patches.getvalue())

    def finish(self) -> None:
        """See Rows."""
        self._tar.close()

    def _add(self, name: str, content: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        self._tar.addfile(member, io.BytesIO(content))


class Hashed(io.RawIOBase):
    """A file that is written from its beginning to its end, and the SHA-256 of that."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._count = 0
        self.sha256 = hashlib.sha256()

    def begin(self, file: IO[bytes]) -> None:
        """Write to this file from here on."""
        self._file = file

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, content: Any) -> int:
        """Append."""
        assert self._file is not None, "there is no file to write to"
        self._file.write(content)
        self.sha256.update(content)
        length = memoryview(content).nbytes
        self._count += length
        return length

    def tell(self) -> int:
        """Bytes so far."""
        return self._count
