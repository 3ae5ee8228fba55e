"""A real MJPEG-over-HTTP server for tests, as network cameras speak it. Arguments: port.

/stream?rate=25 sends pictures; &stop=N stops sending after N of them without hanging up, and goes on after &pause=S
seconds; &end=N hangs up after N. /refused wants another password;
/once answers only the first request. A picture's number is its brightness: 16 + 8 * (number % 25).
"""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import cv2
import numpy as np

PICTURES = [
    cv2.imencode(".jpg", np.full((240, 320, 3), 16 + 8 * number, np.uint8))[1].tobytes() for number in range(25)
]
SERVED = []


class Handler(BaseHTTPRequestHandler):
    """One request."""

    def do_GET(self):
        """Answer it."""
        parts = urlsplit(self.path)
        query = {name: float(value) for name, value in parse_qsl(parts.query) if name != "key"}
        SERVED.append(parts.path)
        if parts.path == "/refused" or (parts.path == "/once" and SERVED.count("/once") > 1):
            self.send_error(401)
        else:
            self._stream(query)

    def _stream(self, query):
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        try:
            for number in range(int(query.get("end", 1_000_000))):
                picture = PICTURES[number % 25]
                head = b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(picture)
                self.wfile.write(head + picture + b"\r\n")
                self.wfile.flush()
                time.sleep(1 / query.get("rate", 25))
                if number + 1 == query.get("stop"):
                    time.sleep(query.get("pause", 60))
        except OSError:
            pass

    def log_message(self, *_):
        """Say nothing."""


ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
