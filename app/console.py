"""Messages on standard error: one line at a time, without secrets."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from foveate.app.standard_error import standard_error

_SCHEME = re.compile(r"\w\w:/+")  # its end; also with a single slash, as a path is written
_CREDENTIALS = re.compile(r"(\w\w:/+)[^\s/?#]*@")
_KEYED = re.compile(  # as in foveate.pipeline.sources.address, which would take long to import
    r"(?i)([?&;/_][^=&;/?\s]*(?:pas|pw|psw|token|secret|key|auth|sig|credential)[^=&;/?\s]*=)([^&;#\s]*?)(?=:?(?:[&;#\s]|$))"
)
_SHORTEST = 4  # a password of fewer characters is only removed where it stands in an address


class Console:
    """Standard error, which may be closed. Learns the secrets of addresses, and never shows them."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()

    def learn(self, address: str) -> None:
        """Remember the secrets in ``address``: user and password, also with an unescaped / or @, and keys."""
        scheme = _SCHEME.search(address)
        if scheme is None:
            return
        rest = address[scheme.end() :]
        login = rest.rpartition("@")[0]
        secrets = [
            login if ":" in login else "",
            login.partition(":")[2],
            *(found[1] for found in _KEYED.findall(rest)),
        ]
        self._secrets |= {form for text in secrets for form in (text, unquote(text)) if len(form) >= _SHORTEST}

    def clean(self, text: str) -> str:
        """``text`` without secrets."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return _KEYED.sub(r"\1***", _CREDENTIALS.sub(r"\1***@", text)) if ":/" in text else text

    def say(self, text: str) -> None:
        """Print ``text`` as it is, cleaned. From any thread."""
        stream = standard_error()
        stream.write(f"{self.clean(text)}\n")  # in one piece, so that lines of two threads stay apart
        stream.flush()

    def error(self, text: str) -> None:
        """Print one line that says why the program ends."""
        self.say(f"foveate: error: {' '.join(text.split())}")

    def warn(self, text: str) -> None:
        """Print one line as a warning."""
        self.say(f"foveate: warning: {' '.join(text.split())}")

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Meanwhile, show what libraries log or warn of as one line each."""
        show, handler = warnings.showwarning, _LogHandler(self)
        warnings.showwarning = lambda message, *_, **__: self.warn(str(message))
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            warnings.showwarning = show
            logging.getLogger().removeHandler(handler)


class _LogHandler(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.warn(record.getMessage())
