"""Binary file objects as sources: open files, io.BytesIO and others, given a path to open them by."""

import errno
import io
import os
import shutil
import tempfile
from typing import IO, Any, Final

from foveate.pipeline.errors import SourceError
from foveate.pipeline.sources.address import Named, shown

_DESCRIPTORS: Final = "/proc/self/fd"


class FileObject:
    """The content of a binary file object, from its beginning, under a path of this process.

    A file of the system is opened again by its path, so that its position neither matters nor changes. All else
    (``io.BytesIO``, a member of an archive, an answer of a server) is first copied to a temporary file as a whole.
    """

    def __init__(self, file: IO[bytes], name: str | None = None) -> None:
        """``name`` is what messages call it; default: its own. SourceError for what is closed, unreadable, or text."""
        own = getattr(file, "name", None)
        name = name or (own if isinstance(own, str) and own else f"<{type(file).__name__}>")
        try:
            self._descriptor = _opened(file)
        except (OSError, ValueError, TypeError) as error:
            raise SourceError(f"{shown(name)}: the file object cannot be read: {_reason(error)}") from None
        self.path = f"{_DESCRIPTORS}/{self._descriptor}"
        self._named = Named(self.path, name)

    def close(self) -> None:
        """Remove the path; the object itself stays open. Safe to call twice."""
        if self._descriptor >= 0:
            self._named.close()
            os.close(self._descriptor)
            self._descriptor = -1


def _opened(file: Any) -> int:
    """A descriptor of its own."""
    if getattr(file, "closed", False):
        raise ValueError("it is closed")
    if isinstance(file, io.TextIOBase):
        raise TypeError("it yields text; open it in binary mode")
    if hasattr(file, "readable") and not file.readable():
        raise ValueError("it is open for writing only")
    raw = getattr(file, "raw", file)
    if isinstance(raw, io.FileIO):
        if raw.writable():
            file.flush()
        return os.dup(raw.fileno())
    return _copied(file)


def _copied(file: IO[bytes]) -> int:
    with tempfile.TemporaryFile() as copy:
        position = file.tell() if hasattr(file, "seekable") and file.seekable() else None
        if position is not None:
            file.seek(0)
        shutil.copyfileobj(file, copy)
        if position is not None:
            file.seek(position)
        copy.flush()
        return os.dup(copy.fileno())


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return f"there is no room for a copy in {tempfile.gettempdir()}; set TMPDIR to a larger folder"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason.splitlines()[0].rstrip(".") if reason else type(error).__name__
