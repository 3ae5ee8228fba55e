"""A store in a folder of this machine, or of a file system that several machines share."""

import contextlib
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from foveate.pipeline.sinks.destination import cannot_write

_PARTS: Final = "_parts"  # files that are being written: HOST.PID.RANDOM
_PART: Final = re.compile(r"(.+)\.(\d+)\.[0-9a-f]+")


class FolderStore:
    """See Store. A file is written in the folder ``_parts``, which is there meanwhile, and moved to its name."""

    def __init__(self, path: str) -> None:
        self._root = Path(path)
        self._parts = self._root / _PARTS

    def prepare(self) -> None:
        """See Store."""
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self._root, error) from error
        self.sweep()

    def sweep(self) -> None:
        """See Store."""
        for name in self.names(_PARTS):
            if _is_abandoned(name):
                self.remove(f"{_PARTS}/{name}")
        with contextlib.suppress(OSError):  # it is gone, or another process is writing
            self._parts.rmdir()

    def read(self, name: str) -> bytes | None:
        """See Store."""
        with self._reporting(name), contextlib.suppress(FileNotFoundError):
            return (self._root / name).read_bytes()
        return None

    def read_all(self, folder: str, known: Callable[[], Mapping[str, bytes]]) -> Mapping[str, bytes]:
        """See Store: reading is as fast as finding out what need not be read."""
        held: dict[str, bytes] = {}
        with self._reporting(folder):
            for name in self.names(folder):
                with (
                    contextlib.suppress(FileNotFoundError),  # it was just removed
                    open(f"{self._root}/{folder}/{name}", "rb", buffering=0) as file,
                ):
                    held[name] = file.read()
        return held

    def names(self, folder: str) -> set[str]:
        """See Store."""
        with self._reporting(folder), contextlib.suppress(FileNotFoundError):
            return set(os.listdir(self._root / folder))  # noqa: PTH208 - there may be very many
        return set()

    def write(self, name: str, content: bytes) -> None:
        """See Store."""
        with self.whole(name) as file, self._reporting(name):
            file.write(content)

    @contextlib.contextmanager
    def whole(self, name: str) -> Iterator[IO[bytes]]:
        """See Store."""
        part = self._parts / f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(8)}"
        with self._reporting(name):
            file = self._opened(part)
        try:
            yield file
            with self._reporting(name):
                file.flush()
                os.fsync(file.fileno())
                file.close()
                (self._root / name).parent.mkdir(exist_ok=True)
                part.replace(self._root / name)
        finally:
            with contextlib.suppress(OSError):  # it may still hold what there is no room for
                file.close()
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    def _opened(self, part: Path) -> IO[bytes]:
        while True:
            self._parts.mkdir(exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # a process that has ended just removed the folder
                return part.open("wb")

    def remove(self, name: str) -> None:
        """See Store."""
        with self._reporting(name):
            (self._root / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _reporting(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise cannot_write(self._root / name, error) from error


def _is_abandoned(part: str) -> bool:
    """Whether the process that wrote a part ran on this machine and is gone."""
    named = _PART.fullmatch(part)
    if named is None or named[1] != socket.gethostname():
        return False
    try:
        state = Path(f"/proc/{named[2]}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"  # it has ended, and its parent has not looked
