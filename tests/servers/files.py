"""A web server of files for tests. Arguments: folder, port. The first part of a path says how, the last which file:

/ranges serves parts, as most servers do; /whole serves whole files only; /endless tells no length either; /cut hangs up
after ?at=N bytes of the file, and then refuses everything; /flaky hangs up after each N bytes, and serves parts;
/silent sends N bytes and then nothing; /slow sends N bytes a second; /redirect and /loop lead elsewhere; /secret asks
for user:geheim77; /broken answers 503; everything else is not found.
"""

import base64
import contextlib
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

FOLDER = Path(sys.argv[1])
PASSWORD = "Basic " + base64.b64encode(b"user:geheim77").decode()
SERVED = {"ranges", "whole", "endless", "cut", "flaky", "silent", "slow", "secret"}
CUT = set()  # files that /cut serves no more


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """Answer one request."""
        self.close_connection = True
        parts = urlsplit(self.path)
        how, _, name = unquote(parts.path[1:]).partition("/")
        limit = int(parse_qs(parts.query).get("at", ["0"])[0])
        if how in ("redirect", "loop"):
            self._lead(f"/ranges/{name}" if how == "redirect" else self.path)
        elif how == "secret" and self.headers.get("Authorization") != PASSWORD:
            self._refuse(401, {"WWW-Authenticate": 'Basic realm="films"'})
        elif how == "broken" or self.path in CUT:
            self._refuse(503)
        elif how in SERVED and (FOLDER / name).is_file():
            with contextlib.suppress(OSError):
                self._serve(how, (FOLDER / name).read_bytes(), limit)
        else:
            self._refuse(404)

    def _lead(self, where):
        self.send_response(302)
        self.send_header("Location", where)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _refuse(self, code, headers=()):
        self.send_response(code)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _serve(self, how, content, limit):
        asked = self.headers.get("Range")
        begin = 0
        if asked and how not in ("whole", "endless"):
            begin = min(int(asked.removeprefix("bytes=").partition("-")[0]), len(content))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if how != "endless":
            self.send_header("Content-Length", str(len(content) - begin))
        self.send_header("Connection", "close")
        self.end_headers()
        self._send(how, content, begin, limit)

    def _send(self, how, content, begin, limit):
        end = {"cut": limit, "silent": limit, "flaky": begin + limit}.get(how, len(content))
        pace = limit // 20 if how == "slow" else len(content)
        while begin < min(end, len(content)):
            piece = content[begin : min(begin + pace, end)]
            self.wfile.write(piece)
            begin += len(piece)
            if how == "slow":
                time.sleep(0.05)
        if begin < len(content) and how == "silent":
            time.sleep(60)
        if begin < len(content) and how == "cut":
            CUT.add(self.path)

    def log_message(self, *_):
        """Say nothing."""


ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
