"""Files that sinks write: checks before the run, one-line errors, and files that appear when they are complete."""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from foveate.pipeline.errors import SinkError
from foveate.pipeline.selection import Header
from foveate.pipeline.sources.address import exists, local_files

STANDARD_OUTPUT: Final = "-"

_REASONS: Final = {
    errno.ENOENT: "its directory does not exist; create it first",
    errno.ENOTDIR: "a part of the path is a file, not a directory; name another place",
    errno.EISDIR: "it is a directory; name a file in it",
    errno.EACCES: "permission denied; name a place you may write to",
    errno.EPERM: "permission denied; name a place you may write to",
    errno.EROFS: "the file system is read-only; name another place",
    errno.ENOSPC: "the disk is full; free some space or name another place",
    errno.EDQUOT: "the disk quota is used up; free some space or name another place",
    errno.ENAMETOOLONG: "the name is too long; shorten it",
}


def is_mqtt(output: str) -> bool:
    """Whether an output is a topic of a broker, and no file."""
    return output.lower().startswith(("mqtt://", "mqtts://"))


def cannot_write(path: Path | str, error: OSError) -> SinkError:
    """The one-line error for ``error``, met while writing ``path``."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or " ".join(str(error).split())
    return SinkError(f"cannot write {path}: {reason}")


def place_of(path: Path | str) -> Path:
    """Where the file itself lies: where a link leads, also where there is nothing yet; else ``path``.

    For files that appear under their name when they are whole: they would take the place of the link.
    """
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)  # noqa: PTH114


def refuse_source(path: Path, header: Header) -> None:
    """Raise SinkError where ``path`` is a file that the stream is read from."""
    if exists(path) and any(path.samefile(source) for source in local_files(header.source)):
        raise SinkError(f"cannot write {path}: it is the source itself; name another file")


def hold(descriptor: int, path: Path) -> None:
    """Lock the open file against other runs until it is closed. Raises SinkError if another run holds the lock.

    Pipes and devices are anyone's; a file system that knows no locks has none.
    """
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SinkError(f"cannot write {path}: another program is writing it; name another file") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise cannot_write(path, error) from error


def claim(path: Path, header: Header) -> None:
    """Make sure, before any work is done, that a file can be written at ``path``. Raises SinkError."""
    refuse_source(path, header)
    try_writing(path)


def try_writing(path: Path) -> None:
    """Make sure that a file can be written at ``path``; what is there stays. Raises SinkError."""
    if os.path.isdir(path):  # noqa: PTH112 - as in sources.address.exists
        raise cannot_write(path, IsADirectoryError(errno.EISDIR, ""))
    write_whole(path, lambda part: part.touch(), keep=False)


def write_whole(path: Path, save: Callable[[Path], None], *, keep: bool = True) -> None:
    """Let ``save`` write a file beside ``path``, which appears under its name only when it is whole.

    Where ``path`` is a link, that is where the link leads. ``keep`` False removes it again: a trial. Raises SinkError.
    """
    place = place_of(path)
    part = part_of(place)
    try:
        save(part)
        if keep:
            part.replace(place)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with contextlib.suppress(OSError):  # where nothing could be written, there is nothing to remove
            part.unlink(missing_ok=True)


def part_of(path: Path) -> Path:
    """The name of a file while it is being written."""
    return path.with_name(f".{path.name}.part")
