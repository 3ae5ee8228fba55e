"""What a server sends of a file."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class ServerError(Exception):
    """A server does not send the file. The message says why and what to do, in one line without the address."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing  # another try may help


class Reply(NamedTuple):
    """The answer to one request; it must be closed."""

    read: Callable[[int], bytes]  # at most so many of the next bytes, as soon as there are some; b"" at the end
    close: Callable[[], None]
    abort: Callable[[], None]  # ends a wait in ``read``, from another thread; the reply is still to be closed
    begin: int  # the place in the file of the first byte
    total: int | None  # bytes of the whole file; None if the server does not say
    parts: bool  # whether the server sends parts of the file as well
    version: str = ""  # changes with the content; empty if the server does not say
    kind: str = ""  # the content's type; empty if the server does not say


class Server(Protocol):
    """Sends one file."""

    def ask(self, begin: int) -> Reply:
        """The file from byte ``begin`` on, or from 0 where the server sends no parts. Raises ServerError."""

    def explain(self, error: Exception) -> ServerError:
        """What an error, met while the reply was read, means."""
