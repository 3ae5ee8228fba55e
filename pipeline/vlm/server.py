"""A client of servers that speak OpenAI's protocol: pictures and a question in, the answer out as it comes."""

import base64
import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from foveate.pipeline.errors import ModelError, SettingsError
from foveate.pipeline.live.backoff import Backoff
from foveate.pipeline.sources.address import shown
from foveate.pipeline.vlm.pictures import Picture

KEY_VARIABLE: Final = "OPENAI_API_KEY"
ANSWER: Final = 256  # tokens that an answer may have, by default
_ENDPOINT: Final = "/chat/completions"
_TRIES: Final = 4
_LONGEST_PAUSE: Final = 20.0  # seconds, also where the server asks for more
_LONGEST_LINE: Final = 1 << 20  # bytes of one event
_LONGEST_PAGE: Final = 1 << 16  # bytes of the body of an error response
_LONGEST_REASON: Final = 300  # characters of a server's own words in a message
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504, 529})  # statuses after which retrying may help
_ADVICE: Final = {
    401: "set the environment variable {variable} to a key that it accepts",
    403: "set the environment variable {variable} to a key that it accepts",
    404: "check the address and the model's name",
}


class Shown(NamedTuple):
    """The pictures of one frame."""

    time: float  # seconds
    pictures: Sequence[Picture]


class _Passing(Exception):  # noqa: N818 - not an error yet
    """A failure after which retrying may help."""

    def __init__(self, why: str, after: float = 0.0) -> None:
        super().__init__(why)
        self.after = after  # seconds that the server asks to wait


class Server:
    """One model of one server, such as vLLM, SGLang, llama.cpp or a hosted one. Several threads may ask it."""

    def __init__(
        self,
        address: str,
        model: str,
        *,
        key_variable: str = KEY_VARIABLE,
        connect_timeout: float = 10.0,
        silence_timeout: float = 120.0,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """``address`` is the server's, such as http://localhost:8000, with or without /v1 and what follows it.

        The key is what the environment variable ``key_variable`` holds; without it none is sent. Seconds until a
        connection must stand, and that may pass between two pieces of the answer; the first may take as long. ``wait``
        passes the time between tries. Raises SettingsError for an address that is none, and a key that cannot be sent.
        """
        self._scheme, self._host, self._port, self._path = _parts(address)
        self._name = shown(address)
        self._model = model
        self._variable = key_variable
        self._key = _key(key_variable)
        self._connect_timeout, self._silence_timeout = connect_timeout, silence_timeout
        self._wait = wait

    def stream(self, frames: Sequence[Shown], text: str, *, max_tokens: int = ANSWER) -> Iterator[str]:
        """The answer to ``text`` about the pictures, piece by piece as it comes; see ``stream_content``."""
        return self.stream_content(content_of(frames, text), max_tokens=max_tokens)

    def stream_content(self, content: Sequence[Mapping[str, Any]], *, max_tokens: int = ANSWER) -> Iterator[str]:
        """The answer to a user's message of such ``content``, as OpenAI's protocol has it, piece by piece as it comes.

        What may pass (no connection, statuses such as 429 and 503) is tried four times, with growing pauses, as long as
        nothing of the answer has come. Raises ModelError, in one line.
        """
        body = json.dumps(
            {
                "model": self._model,
                "messages": [{"role": "user", "content": list(content)}],
                "max_tokens": max_tokens,
                "stream": True,
            }
        ).encode()
        backoff = Backoff(_LONGEST_PAUSE)
        for tries in range(1, _TRIES + 1):
            try:
                connection, response = self._asked(body)
            except _Passing as error:
                if tries == _TRIES:
                    raise self._error(f"{error}, at the last of {_TRIES} tries") from None
                self._wait(min(max(error.after, backoff.pause()), _LONGEST_PAUSE))
                continue
            with closing(connection):
                yield from self._answer(response)
            return

    def _asked(self, body: bytes) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A connection that is about to answer. Raises ModelError; _Passing if retrying may help."""
        connection = self._connected()
        try:
            connection.request("POST", self._path, body, self._headers())
            response = connection.getresponse()
            if response.status != 200:
                self._refuse(response)
        except TimeoutError:
            connection.close()
            raise self._silent() from None
        except OSError as error:  # a server that hangs up as well
            connection.close()
            raise _Passing(error.strerror or str(error)) from None
        except http.client.HTTPException as error:
            connection.close()
            raise self._garbage(str(error)) from None
        except BaseException:
            connection.close()
            raise
        return connection, response

    def _connected(self) -> http.client.HTTPConnection:
        connection = self._connection()
        try:
            connection.connect()
        except TimeoutError:
            raise _Passing(f"no connection within {self._connect_timeout:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise self._error(f"its certificate is not trusted: {error.verify_message}") from None
        except OSError as error:
            raise _Passing(f"no connection: {error.strerror or error}") from None
        connection.sock.settimeout(self._silence_timeout)
        return connection

    def _connection(self) -> http.client.HTTPConnection:
        if self._scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._connect_timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._connect_timeout)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        return headers | ({"Authorization": f"Bearer {self._key}"} if self._key else {})

    def _refuse(self, response: http.client.HTTPResponse) -> None:
        """Raise the error for a status other than 200."""
        status = response.status
        said = f"{status} {response.reason}".strip()
        if reason := self._reason(self._page(response)):
            said += f": {reason}"
        if status in _PASSING:
            after = response.headers.get("Retry-After", "")
            raise _Passing(said, float(after) if re.fullmatch(r"\d{1,6}(\.\d+)?", after) else 0.0)
        if 300 <= status < 400:
            said += f"; it redirects to {shown(response.headers.get('Location', 'nowhere'))}: use that address"
        elif status in _ADVICE:
            said += f"; {_ADVICE[status].format(variable=self._variable)}"
        raise self._error(said)

    def _page(self, response: http.client.HTTPResponse) -> str:
        """The body of an error response, as far as it is short and comes in time."""
        page, end = b"", time.monotonic() + self._connect_timeout
        while len(page) < _LONGEST_PAGE and time.monotonic() < end and (more := response.read1(_LONGEST_PAGE)):
            page += more
        return page.decode("utf-8", "replace")

    def _answer(self, response: http.client.HTTPResponse) -> Iterator[str]:
        """The pieces of the answer in a response of server-sent events."""
        count, ended = 0, False
        try:
            for line in self._lines(response):
                event = self._event(line)
                if event is None:
                    continue
                if event == "[DONE]":
                    return
                piece, last = self._piece(event)
                ended = ended or last
                count += len(piece)
                if piece:
                    yield piece
        except TimeoutError:
            raise self._silent(count) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._error(f"the answer was cut off after {count} characters ({type(error).__name__})") from None
        if not ended:
            what = f"the answer was cut off after {count} characters" if count else "it answered nothing"
            raise self._error(f"{what}; see the server's log")

    def _lines(self, response: http.client.HTTPResponse) -> Iterator[str]:
        """Whole lines as they come. Raises TimeoutError where none has come for too long, though bytes may have."""
        held, since = b"", time.monotonic()
        while more := response.read1(1 << 16):
            *lines, held = (held + more).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace").rstrip("\r")
            now = time.monotonic()
            since = now if lines else since
            if now - since > self._silence_timeout:
                raise TimeoutError
            if len(held) > _LONGEST_LINE:
                raise self._garbage(held[:40].decode("utf-8", "replace"))
        if held:
            yield held.decode("utf-8", "replace")

    def _event(self, line: str) -> str | None:
        """What a line of an event stream says; None for comments, other fields and empty lines."""
        field, colon, value = line.partition(":")
        if field == "data" and colon:
            return value.strip()
        if not line.strip() or line[0] == ":" or (colon and field in ("event", "id", "retry")):
            return None
        raise self._garbage(line)

    def _piece(self, event: str) -> tuple[str, bool]:
        """The text of one event, and whether it is the last one."""
        try:
            said = json.loads(event)
            if said.get("error"):
                raise self._error(f"it reports: {self._reason(event)}")
            choices = said["choices"]
            if not choices:  # as in an event with the usage
                return "", False
            text = (choices[0].get("delta") or {}).get("content") or ""
            ended = choices[0].get("finish_reason") is not None
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise self._garbage(event) from None
        if not isinstance(text, str):
            raise self._garbage(event)
        return text, ended

    def _reason(self, text: str) -> str:
        """What a server says is wrong: OpenAI's error.message, other usual fields, or its own text; never the key."""
        text = self._without_key(text)
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return "" if text.lstrip().startswith("<") else _shortened(text)  # a page for browsers
        for field in ("error", "message", "detail"):
            if isinstance(said, dict) and said.get(field):
                said = said[field]
        return _shortened(said if isinstance(said, str) else json.dumps(said))

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text

    def _silent(self, count: int = 0) -> ModelError:
        after = f" after {count} characters of the answer" if count else ""
        return self._error(
            f"it sent nothing for {self._silence_timeout:g} s{after}; ask about less, or allow more time"
        )

    def _garbage(self, text: str) -> ModelError:
        said = _shortened(self._without_key(text), 60)
        return self._error(f"it is not an OpenAI-compatible API: it answered {said!r}; check the address")

    def _error(self, why: str) -> ModelError:
        return ModelError(f"model {self._model!r} at {self._name}: {why}")


def content_of(frames: Sequence[Shown], text: str) -> list[dict[str, Any]]:
    """The content of a user's message: each frame's time, its pictures, where the sharp parts lie, and the question."""
    content: list[dict[str, Any]] = []
    for frame in frames:
        for picture in frame.pictures:
            where = f"<{frame.time:.1f} seconds>"
            if picture.box is not None:
                where = f"Part of it, left, top, right, bottom in thousandths of the picture: {list(picture.box)}"
            content += [{"type": "text", "text": where}, _image(picture)]
    return [*content, {"type": "text", "text": text}]


def _image(picture: Picture) -> dict[str, Any]:
    coded = base64.b64encode(picture.jpeg()).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{coded}"}}


def _parts(address: str) -> tuple[str, str, int | None, str]:
    """Scheme, host, port and the endpoint's path."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host or parts.query or re.search(r"[^!-~]", parts.path):
        raise SettingsError(f"--server must be an address such as http://localhost:8000, got {shown(address)!r}")
    if parts.username is not None:
        raise SettingsError("--server must hold no password; the key is taken from the environment, see --key-env")
    path = parts.path.rstrip("/") or "/v1"
    return parts.scheme, host, port, path if path.endswith(_ENDPOINT) else path + _ENDPOINT


def _key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise SettingsError(f"the environment variable {variable!r} holds no key: it must be one line of ASCII letters")
    return key


def _shortened(text: str, most: int = _LONGEST_REASON) -> str:
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return text if len(text) <= most else text[:most] + "..."
