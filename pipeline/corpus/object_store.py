"""A store in a bucket."""

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

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

    def read_all(self, folder: str, known: Callable[[], Mapping[str, bytes]]) -> Mapping[str, bytes]:
        """See Store: an object whose listed digest is that of what is known of it is not fetched."""
        listed = self._listed(folder)
        thought = known() if listed else {}
        held = {name: content for name, content in thought.items() if _holds(listed.get(name, {}), content)}
        paths = {about["name"]: name for name, about in listed.items() if name not in held}
        with self._reporting(folder):
            fetched = self._files.cat(list(paths), on_error="return") if paths else {}
            for path, content in fetched.items():
                if not isinstance(content, Exception):
                    held[paths[path]] = bytes(content)
                elif not isinstance(content, FileNotFoundError):  # else it was just removed
                    raise content
        return held

    def names(self, folder: str) -> set[str]:
        """See Store."""
        return set(self._listed(folder))

    def write(self, name: str, content: bytes) -> None:
        """See Store."""
        with self._reporting(name):
            self._files.pipe_file(f"{self._root}/{name}", content)

    @contextlib.contextmanager
    def whole(self, name: str) -> Iterator[IO[bytes]]:
        """See Store."""
        with self._reporting(name):
            file = tempfile.TemporaryFile()  # noqa: SIM115 - closing it may fail
        try:
            yield file
            with self._reporting(name):
                file.flush()
                self._files.put_file(f"/proc/self/fd/{file.fileno()}", f"{self._root}/{name}")
        finally:
            with contextlib.suppress(OSError):  # it may still hold what there is no room for
                file.close()

    def remove(self, name: str) -> None:
        """See Store."""
        with self._reporting(name), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{name}")

    def _listed(self, folder: str) -> dict[str, dict[str, Any]]:
        """The objects of a folder by their names in it, as the bucket describes them."""
        with self._reporting(folder), contextlib.suppress(FileNotFoundError):
            held = self._files.ls(f"{self._root}/{folder}", detail=True)
            return {_last(about["name"]): about for about in held if _last(about["name"])}
        return {}

    @contextlib.contextmanager
    def _reporting(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise SinkError(f"{self._shown}/{name}: {reason_of(error)}") from error


def _holds(about: dict[str, Any], content: bytes) -> bool:
    """Whether an object is known to hold this: S3's ETag is the MD5 digest, unless a key of one's own encrypts it."""
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return about.get("size") == len(content) and str(about.get("ETag")).strip('"') == digest


def _last(path: str) -> str:
    return path.rpartition("/")[2]
