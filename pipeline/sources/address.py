"""Addresses: what the user typed, in a form that may be shown, and the files it stands for."""

import os
import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from foveate.pipeline.errors import SourceError

_NUMBER = re.compile(r"%(?:0(\d+))?d")
_SECRET = re.compile(r"(?i)([?&;/_][^=&;/?]*(?:pas|pw|psw|token|secret|key|auth|sig|credential)[^=&;/?]*=)[^&;#]*")
_SCHEME = re.compile(r"\w\w:/+")  # its end; also with a single slash, as a path is written
_NETWORK = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://", re.IGNORECASE)
_AUTHORITY_END = re.compile(r"[/?#]")

_NAMES: dict[str, list[str]] = {}  # names to show for addresses of temporary files, the latest last


class Named:
    """Has an address shown under another name, until it is closed. From any thread."""

    def __init__(self, address: str, name: str) -> None:
        self._spellings, self._name = {address, str(Path(address))}, name
        for spelling in self._spellings:
            _NAMES.setdefault(spelling, []).append(name)

    def close(self) -> None:
        """Show the address as itself again. Safe to call twice."""
        for spelling in self._spellings:
            names = _NAMES[spelling]
            names.remove(self._name)
            if not names:
                del _NAMES[spelling]
        self._spellings = set()


def shown(address: str) -> str:
    """The address as it may appear in a message, a file or a page: one line, without passwords."""
    name = redact(_NAMES.get(address, [address])[-1])
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def redact(address: str) -> str:
    """Remove user:password, and the values of secrets in the query, from an address with a scheme.

    A password may hold '/' or '@' unescaped; where in doubt more is removed, never less.
    """
    scheme = _SCHEME.search(address)
    if scheme is None:
        return address
    rest = address[scheme.end() :]
    authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
    if "@" in authority:
        rest = authority.rpartition("@")[2] + rest[len(authority) :]
    if ":" in authority and "@" in rest:
        rest = rest.rpartition("@")[2]
    return address[: scheme.end()] + _SECRET.sub(r"\1***", rest)


def parts_of(address: str) -> SplitResult:
    """The parts of a network address. Raises SourceError for brackets that hold no IPv6 address."""
    try:
        return urlsplit(address)
    except ValueError:
        raise SourceError(f"{shown(address)}: not an address; check its host and port") from None


def is_network(address: str) -> bool:
    """True for rtsp://..., http://... and the like, but not for file://..., which is a path."""
    return _NETWORK.match(address) is not None


def is_pattern(path: Path) -> bool:
    """True where the file name holds exactly one number like %d or %04d; '%%' stands for '%'."""
    return len(_NUMBER.findall(path.name.replace("%%", ""))) == 1


def numbered_files(path: Path) -> list[Path]:
    """The files that a numbered pattern stands for, in the order of their numbers; gaps are allowed.

    Only the name holds the pattern; a '%' in a folder's name is a plain character.
    Raises SourceError when there is none.
    """
    before, width, after = _split(path.name)
    shape = re.compile(re.escape(before) + r"(\d+)" + re.escape(after))
    found: list[tuple[int, Path]] = []
    for entry in _listing(path):
        match = shape.fullmatch(entry.name)
        if match and match[1] == f"{int(match[1]):0{width}d}":
            found.append((int(match[1]), entry))
    if not found:
        raise SourceError(f"{shown(str(path))}: no file matches this numbered name; check folder and pattern")
    return [entry for _, entry in sorted(found)]


def exists(path: str | Path) -> bool:
    """Whether there is a file or directory of that name, which may be one that no file can have."""
    return os.path.exists(path)  # noqa: PTH110 - pathlib of Python 3.11 raises where a name is too long


def local_files(address: str) -> list[Path]:
    """The files that are read where ``address`` is the source; none where it is no file, or there is none."""
    path = Path(address)
    if exists(path):
        return [path]
    try:
        return numbered_files(path) if is_pattern(path) and not is_network(address) else []
    except SourceError:
        return []


def _split(name: str) -> tuple[str, int, str]:
    """A pattern's text before the number, the number's width, and the text after it."""
    hidden = name.replace("%%", "\0")
    match = _NUMBER.search(hidden)
    assert match is not None
    before, after = hidden[: match.start()], hidden[match.end() :]
    return before.replace("\0", "%"), int(match[1] or 1), after.replace("\0", "%")


def _listing(path: Path) -> list[Path]:
    try:
        return list(path.parent.iterdir())
    except OSError as error:
        reason = (error.strerror or "cannot be listed").lower()
        raise SourceError(f"{shown(str(path))}: its folder cannot be read: {reason}") from None
