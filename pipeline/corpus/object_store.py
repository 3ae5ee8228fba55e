"""A store in a bucket."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO

from foveate.pipeline.corpus.buckets import file_system, reason_of, require_answer
from foveate.pipeline.errors import SinkError, SourceError
from foveate.pipeline.sources.address import shown


class ObjectStore:
    """See Store. An object appears when all of it was sent; until then it is a file without a name on this machine."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._shown = shown(address).rstrip("/")
        self._files, path = file_system(address)
        self._root = path.rstrip("/")

    def prepare(self) -> None:
        """See Store: the server answers; writing the corpus's description will show whether that is allowed."""
        try:
            require_answer(self._address)
        except SourceError as error:
            raise SinkError(str(error)) from error

    def sweep(self) -> None:
        """See Store: an unfinished object is never seen."""

    def read(self, name: str) -> bytes | None:
        """See Store."""
        with self._reporting(name), contextlib.suppress(FileNotFoundError):
            return bytes(self._files.cat_file(f"{self._root}/{name}"))
        return None

    def read_all(self, folder: str) -> Mapping[str, bytes]:
        """See Store."""
        paths = self._paths(folder)
        if not paths:
            return {}
        with self._reporting(folder):
            return {_last(path): bytes(held) for path, held in self._files.cat(paths).items()}

    def names(self, folder: str) -> set[str]:
        """See Store."""
        return {_last(path) for path in self._paths(folder)}

    def write(self, name: str, content: bytes) -> None:
        """See Store."""
        with self._reporting(name):
            self._files.pipe_file(f"{self._root}/{name}", content)

    @contextlib.contextmanager
    def whole(self, name: str) -> Iterator[IO[bytes]]:
        """See Store."""
        with tempfile.TemporaryFile() as file:
            yield file
            file.flush()
            with self._reporting(name):
                self._files.put_file(f"/proc/self/fd/{file.fileno()}", f"{self._root}/{name}")

    def remove(self, name: str) -> None:
        """See Store."""
        with self._reporting(name), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")

    def _paths(self, folder: str) -> list[str]:
        with self._reporting(folder), contextlib.suppress(FileNotFoundError):
            return [str(path) for path in self._files.ls(f"{self._root}/{folder}", detail=False) if _last(path)]
        return []

    @contextlib.contextmanager
    def _reporting(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise SinkError(f"{self._shown}/{name}: {reason_of(error)}") from error


def _last(path: str) -> str:
    return path.rpartition("/")[2]
