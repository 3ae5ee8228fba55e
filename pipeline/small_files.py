"""Files that hold settings: small, and read whole; never a device or a pipe that does not end."""

import errno
import os
import select
import stat
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

SMALL: Final = 2**20
"""Bytes that a file of settings may have."""
TIMEOUT: Final = 10.0  # seconds in which piped input must have ended
_PART: Final = 65_536


def small_text(path: Path, most: int = SMALL) -> str:
    """What a text file holds, without the mark that some editors put before it.

    Raises UnicodeDecodeError, and OSError for what cannot be read, is larger than ``most`` bytes, or has not ended
    within 10 s.
    """
    # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        content = _content(descriptor, path, most)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes, more than such a file needs", str(path))
    return content.decode("utf-8-sig")


def refuse_endless(path: Path) -> None:
    """Raise OSError where the file to be read is a device or a pipe, or there is none."""
    kind = path.stat().st_mode
    if stat.S_ISCHR(kind) or stat.S_ISBLK(kind) or stat.S_ISFIFO(kind):
        raise OSError(errno.ESPIPE, "it is a device or a pipe; give a file", str(path))


@contextmanager
def awaited(path: Path) -> Iterator[None]:
    """Where ``path`` is a pipe, enter as soon as somebody writes to it. OSError where nobody does for 10 s."""
    if not path.is_fifo():
        yield
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _await(descriptor, path, TIMEOUT)
        yield  # kept open, so that the writer gets no SIGPIPE
    finally:
        os.close(descriptor)


def _await(descriptor: int, path: Path, seconds: float) -> None:
    news = select.poll()
    news.register(descriptor, select.POLLIN)
    if not news.poll(max(0.0, seconds) * 1000):
        raise OSError(errno.ETIMEDOUT, f"its end did not come within {TIMEOUT:g} s", str(path))


def _content(descriptor: int, path: Path, most: int) -> bytes:
    """The content, or its beginning of more than ``most`` bytes."""
    content = b""
    deadline = time.monotonic() + TIMEOUT
    while len(content) <= most:
        _await(descriptor, path, deadline - time.monotonic())
        part = os.read(descriptor, _PART)
        if not part:
            break
        content += part
    return content


def small_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds. Raises OSError as ``small_text`` does, ValueError for what is no TOML."""
    try:
        return tomllib.loads(small_text(path))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of Python's, which reads no longer numbers
        raise ValueError("it holds a number of thousands of digits") from None
