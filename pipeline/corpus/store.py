"""Where a corpus lies: a folder, or a bucket that fsspec knows. A file appears under its name only when it is whole."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import IO, Protocol

from foveate.pipeline.sources.address import is_network
from foveate.pipeline.sources.schemes import local


class Store(Protocol):
    """Files by name (``frames/a.parquet``). Every method raises SinkError, in one line."""

    def prepare(self) -> None:
        """Make sure that files can be written."""

    def sweep(self) -> None:
        """Remove what processes left behind that are gone."""

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""

    def read_all(self, folder: str, known: Callable[[], Mapping[str, bytes]]) -> Mapping[str, bytes]:
        """What all files of a folder hold, by their names in it.

        ``known`` gives what some are thought to hold: where the store can tell that it is true, they are not read.
        """

    def names(self, folder: str) -> set[str]:
        """The names of all files in a folder."""

    def write(self, name: str, content: bytes) -> None:
        """Put a file in place of what may be there."""

    def whole(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """A file to write, which appears under its name when the block ends without an error."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""


def open_store(address: str) -> Store:
    """The store at a path or an address such as ``s3://bucket/corpus``. Raises SettingsError for an unknown scheme."""
    address = local(address)
    if is_network(address):
        from foveate.pipeline.corpus.object_store import ObjectStore

        return ObjectStore(address)
    from foveate.pipeline.corpus.folder_store import FolderStore

    return FolderStore(address)
