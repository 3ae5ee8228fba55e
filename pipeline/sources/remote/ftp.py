"""Files by FTP (RFC 959, RFC 3659)."""

from __future__ import annotations

import contextlib
import ftplib
import socket
from urllib.parse import unquote, urlsplit

from foveate.pipeline.settings import LiveSettings
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.remote.reply import Reply, ServerError

_NOT_LOGGED_IN = "530"
_UNAVAILABLE = "550"


class FtpServer:
    """One file by FTP. See ``Server``."""

    def __init__(self, address: str, network: LiveSettings) -> None:
        """Raises ServerError for what is no address."""
        try:
            parts = urlsplit(address)
            self._host, self._port = parts.hostname or "", parts.port or ftplib.FTP_PORT
        except ValueError:
            raise ServerError("not an address; check its host and port") from None
        self._user, self._password = unquote(parts.username or "anonymous"), unquote(parts.password or "")
        self._path = unquote(parts.path.removeprefix("/"))  # below the folder of the user (RFC 1738, 3.2.2)
        if not self._path.isprintable():
            raise ServerError("not an address; file names have no control characters")
        self._limit = network.connect_timeout

    def ask(self, begin: int) -> Reply:
        """See ``Server``. Every request is a session of its own."""
        session = ftplib.FTP(timeout=self._limit)
        try:
            session.connect(self._host, self._port)
            session.login(self._user, self._password)
            session.voidcmd("TYPE I")
            total = _size(session, self._path)
            data = session.transfercmd(f"RETR {self._path}", begin or None)
        except (OSError, EOFError, ValueError, ftplib.Error) as error:
            session.close()
            raise self.explain(error) from None

        def close() -> None:
            data.close()
            session.close()

        return Reply(data.recv, close, lambda: data.shutdown(socket.SHUT_RDWR), begin, total, True)

    def explain(self, error: Exception) -> ServerError:
        """See ``Server``."""
        reply = shown(" ".join(str(error).split()))
        if isinstance(error, ftplib.error_perm) and reply.startswith(_NOT_LOGGED_IN):
            return ServerError("the server refused the user or password; check both (ftp://USER:PASSWORD@HOST/...)")
        if isinstance(error, ftplib.error_perm) and reply.startswith(_UNAVAILABLE):
            return ServerError("there is no such file on the server; check the address")
        if isinstance(error, ftplib.Error):
            return ServerError(f"the server answered {reply}", passing=isinstance(error, ftplib.error_temp))
        if isinstance(error, socket.gaierror | UnicodeError):
            return ServerError("its host name is not known; check the address and the network", passing=True)
        if isinstance(error, TimeoutError):
            return ServerError(f"no answer within {self._limit:g} s; check the address", passing=True)
        reason = (error.strerror or "").lower() if isinstance(error, OSError) else ""
        return ServerError(f"{reason or 'the server closed the connection'}; check the address", passing=True)


def _size(session: ftplib.FTP, path: str) -> int | None:
    with contextlib.suppress(ftplib.Error):
        return session.size(path)
    return None
