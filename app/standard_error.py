"""Standard error for progress and warnings: if it is closed or full, or nobody reads it, the work goes on."""

import contextlib
import sys
from typing import TextIO, cast


class StandardError:
    """The part of a text file's interface that print and rich need. What cannot be written is dropped."""

    def __init__(self) -> None:
        self._stream = sys.stderr  # that of now: a bar puts itself before it

    @property
    def encoding(self) -> str:
        """The name of its encoding."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write ``text`` if possible. Returns its length in any case."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, if possible."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream is not None and self._stream.isatty()


def standard_error() -> TextIO:
    """A StandardError, typed as a text file."""
    return cast("TextIO", StandardError())
