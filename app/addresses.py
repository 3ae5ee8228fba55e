"""Addresses from the environment or from files, and no password in the process's title."""

import contextlib
import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.small_files import small_text
from foveate.pipeline.sources.address import redact

_ENVIRONMENT = "env:"
_FILE = "@"
_ARGUMENTS_AT = 45  # of the fields of /proc/self/stat behind the name: arg_start and arg_end (proc(5), 48 and 49)


def resolved(address: str) -> str:
    """The address itself, or that in the variable or the file that it names. Raises SettingsError."""
    found = all_resolved(address)
    if len(found) > 1:
        raise SettingsError(f"{address.removeprefix(_FILE)} must hold one line, an address")
    return found[0]


def all_resolved(address: str) -> tuple[str, ...]:
    """The same of a file that may hold several addresses, one on each line; there is one at least."""
    if address.startswith(_ENVIRONMENT):
        name = address.removeprefix(_ENVIRONMENT)
        found = os.environ.get(name, "").strip()
        if not found:
            raise SettingsError(f"the environment variable {name!r} holds no address; set it")
        return (found,)
    if not address.startswith(_FILE):
        return (address,)
    path = Path(address.removeprefix(_FILE))
    try:
        lines = tuple(filter(None, map(str.strip, small_text(path).splitlines())))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"the address in {path} cannot be read: {reason}") from None
    if not lines:
        raise SettingsError(f"{path} holds no address; write one on each line")
    return lines


def hide_in_title(addresses: Sequence[str]) -> None:
    """Overwrite what ``ps`` shows of addresses with secrets, by their redacted form. On Linux; else nothing happens."""
    secret = [address for address in addresses if redact(address) != address]
    if not secret:
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        begin, end = int(fields[_ARGUMENTS_AT]), int(fields[_ARGUMENTS_AT + 1])
        if not 0 < begin < end:
            return
        title = ctypes.string_at(begin, end - begin)
        for address in secret:
            shown = os.fsencode(redact(address))
            title = title.replace(os.fsencode(address), shown.ljust(len(os.fsencode(address)), b" "))
        ctypes.memmove(begin, title, end - begin)
