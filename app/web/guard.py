"""Access to the page: from this machine, or with the token; never through a page of another site."""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_COOKIE = "foveate_token_{port}"  # cookies are shared by all ports of a host
_OPEN = {"/healthz"}  # reveals no names
_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """Passes requests that carry the token, in a header, a cookie, or once in the address (?token=).

    Without a token only host names of this machine are served, which prevents DNS rebinding.
    """

    def __init__(self, app: ASGIApp, token: str | None, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(scope)
        if answer is not None:
            await answer(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        await self._app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self._token is None:
            host = headers.get("host", "").rpartition(":")[0] or headers.get("host", "")
            known = host.strip("[]").lower() in self._hosts
            return None if known else PlainTextResponse("unknown host name\n", 400)
        cookie = _COOKIE.format(port=scope["server"][1])
        if scope["path"] in _OPEN or self._bears_token(headers, cookie):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if self._same(query.pop("token", [""])[0]):
            rest = urlencode(query, doseq=True)
            path = "/" + scope["path"].lstrip("/")  # two slashes would redirect to another host
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(cookie, self._token, httponly=True, samesite="strict")
            return answer
        return PlainTextResponse("this page needs an access token: open it with ?token=...\n", 401)

    def _bears_token(self, headers: Headers, name: str) -> bool:
        kind, _, value = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._same(value.strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(name)
        except CookieError:
            return False
        return cookie is not None and self._same(cookie.value)

    def _same(self, word: str) -> bool:
        return self._token is not None and hmac.compare_digest(word.encode(), self._token.encode())
