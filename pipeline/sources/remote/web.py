"""Files by HTTP and HTTPS (RFC 9110): parts of them, passwords, redirects, certificates."""

import os
import re
import socket
import ssl
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import (
    HTTPBasicAuthHandler,
    HTTPDigestAuthHandler,
    HTTPPasswordMgrWithDefaultRealm,
    HTTPRedirectHandler,
    HTTPSHandler,
    Request,
    build_opener,
)

from foveate.pipeline.settings import LiveSettings
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.remote.reply import Reply, ServerError
from foveate.pipeline.sources.trust import not_trusted, trusting

_RANGE = re.compile(r"bytes (\d+)-\d*/(\d+|\*)")
_PAST_THE_END = 416
_PASSING = {408, 425, 429, 500, 502, 503, 504}  # codes after which another try may help
_REASONS = {
    401: "the server refused the user or password; check both (https://USER:PASSWORD@HOST/...)",
    403: "the server refused the user or password; check both (https://USER:PASSWORD@HOST/...)",
    404: "there is no such file on the server; check the address",
    410: "there is no such file on the server any more; check the address",
}
_REASONS |= dict.fromkeys((301, 302, 303, 307, 308), "the server redirects in a circle; check the address")
_UNQUOTED = "/%:=&?~+!$,;'@()*[]"


class WebServer:
    """One file by HTTP or HTTPS. See ``Server``."""

    def __init__(self, address: str, network: LiveSettings) -> None:
        """Raises ServerError for what is no address, and SettingsError."""
        try:
            parts = urlsplit(address)
            host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
            place = host if parts.port is None else f"{host}:{parts.port}"
        except ValueError:
            raise ServerError("not an address; check its host and port") from None
        self._limit = network.connect_timeout
        path = quote(parts.path or "/", safe=_UNQUOTED)
        self._url = urlunsplit((parts.scheme.lower(), place, path, quote(parts.query, safe=_UNQUOTED), ""))
        known = HTTPPasswordMgrWithDefaultRealm()
        if parts.username is not None:
            known.add_password(None, self._url, unquote(parts.username), unquote(parts.password or ""))
        self._opener = build_opener(
            HTTPSHandler(context=trusting(network)),
            HTTPBasicAuthHandler(known),
            HTTPDigestAuthHandler(known),
            _SafeRedirects(),
        )

    def ask(self, begin: int) -> Reply:
        """See ``Server``."""
        request = Request(self._url, headers={"User-Agent": "foveate", "Range": f"bytes={begin}-"})
        try:
            response = self._opener.open(request, timeout=self._limit)
        except HTTPError as error:
            error.close()
            if error.code == _PAST_THE_END:  # an empty file, or one that has become shorter
                return Reply(lambda _: b"", lambda: None, lambda: None, begin, begin, True)
            raise self._refused(error) from None
        except (OSError, HTTPException, ValueError) as error:
            raise self.explain(error) from None
        return _reply(response)

    def explain(self, error: Exception) -> ServerError:
        """See ``Server``."""
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return ServerError(not_trusted(reason))
        if isinstance(reason, socket.gaierror | UnicodeError):
            return ServerError("its host name is not known; check the address and the network", passing=True)
        if isinstance(reason, TimeoutError):
            return ServerError(f"no answer within {self._limit:g} s; check the address", passing=True)
        if isinstance(reason, OSError) and reason.strerror:
            return ServerError(f"{reason.strerror.lower()}; check the address", passing=True)
        reply = shown(" ".join(str(reason).split())) or type(reason).__name__
        return ServerError(f"{reply}; check the address", passing=isinstance(error, HTTPException))

    @staticmethod
    def _refused(error: HTTPError) -> ServerError:
        reply = shown(" ".join(str(error.reason).split()))
        reason = _REASONS.get(error.code, f"the server answered {error.code} ({reply})")
        return ServerError(reason, passing=error.code in _PASSING)


class _SafeRedirects(HTTPRedirectHandler):
    """Follows redirects, but none to another protocol, or from HTTPS to HTTP."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request that follows. Raises URLError."""
        leads = urlsplit(newurl).scheme.lower()
        if leads not in ("http", "https") or (req.type == "https" and leads == "http"):
            raise URLError(f"the server redirects from {req.type}:// to {leads}://, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _hang_up(response: HTTPResponse) -> None:
    with socket.socket(fileno=os.dup(response.fileno())) as connection:
        connection.shutdown(socket.SHUT_RDWR)


def _reply(response: Any) -> Reply:
    assert isinstance(response, HTTPResponse)
    headers = response.headers
    part = _RANGE.fullmatch(headers.get("Content-Range", "")) if response.status == 206 else None
    length = headers.get("Content-Length", "")
    whole = int(length) if length.isascii() and length.isdigit() else None
    total = whole if part is None else int(part[2]) if part[2] != "*" else None
    return Reply(
        response.read1,
        response.close,
        lambda: _hang_up(response),
        0 if part is None else int(part[1]),
        total,
        part is not None,
        headers.get("ETag") or headers.get("Last-Modified") or "",
        headers.get_content_type(),
    )
