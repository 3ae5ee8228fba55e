"""Serves the page from a thread of its own."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

from foveate.app.web.shown import ShownSource
from foveate.pipeline.errors import EngineError, SettingsError
from foveate.pipeline.extras import install_command
from foveate.pipeline.small_files import small_text

_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_JOIN_TIMEOUT = 2.0  # seconds that the server gets to end
_SHORTEST = 8  # characters of a token


class WebServer:
    """Listens as soon as it is made; serves while it is entered."""

    def __init__(self, where: str, token_file: str | None, sources: Sequence[ShownSource]) -> None:
        """Raises SettingsError, also where the token is missing; EngineError where the extra web is not installed."""
        try:
            import uvicorn

            from foveate.app.web.site import Site
        except ImportError as error:
            raise EngineError(f"--web needs {error.name}, which is not installed: {install_command('web')}") from None
        host, port = _place(where)
        token = None if token_file is None else _token_in(token_file)
        if token is None and not _is_loopback(host):
            raise SettingsError(f"--web {where} can be reached from other machines: give --web-token FILE as well")
        self._socket = _listening(host, port)
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{self._socket.getsockname()[1]}/"
        site = Site(sources, lambda: self._server.should_exit)
        config = uvicorn.Config(
            site.application(token, _LOOPBACK_NAMES | {host.lower()}),
            log_config=None,
            log_level="error",  # what no client of ours sends is answered, and is nothing to log
            access_log=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="foveate-web", daemon=True
        )

    def __enter__(self) -> WebServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(_JOIN_TIMEOUT)
        self._socket.close()


def _place(where: str) -> tuple[str, int]:
    host, colon, port = where.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise SettingsError(f"--web must be HOST:PORT, such as 127.0.0.1:8080, got {where!r}")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token_in(name: str) -> str:
    try:
        token = small_text(Path(name)).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"--web-token {name!r} cannot be read: {reason}") from None
    if len(token) < _SHORTEST or not token.isascii() or not token.replace("-", "").replace("_", "").isalnum():
        raise SettingsError(f"--web-token {name!r} must hold at least {_SHORTEST} letters, digits, - or _")
    return token


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise SettingsError(
            f"--web: cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}"
        ) from None
