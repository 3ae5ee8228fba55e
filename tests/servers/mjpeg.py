"""A real MJPEG-over-HTTP server for tests, as network cameras speak it. Arguments: port.

/stream?rate=25 sends pictures; &stop=N stops sending after N of them without hanging up, and goes on after &pause=S
seconds; &end=N hangs up after N; &spoil=N makes every Nth part noise; &grow=N sends larger pictures after N; &flood=N
sends nothing but noise after N. /garbage sends noise from the beginning. /refused wants another password;
/once answers only the first request. A picture's number is its brightness: 16 + 8 * (number % 25).
"""

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import cv2
import numpy as np

PICTURES = [
    cv2.imencode(".jpg", np.full((240, 320, 3), 16 + 8 * number, np.uint8))[1].tobytes() for number in range(25)
]
LARGER = cv2.imencode(".jpg", np.full((360, 640, 3), 90, np.uint8))[1].tobytes()
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
            self._stream(query, parts.path == "/garbage")

    def _stream(self, query, garbage):
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        try:
            if garbage:
                self.wfile.write(os.urandom(300_000))
                return
            for number in range(int(query.get("end", 1_000_000))):
                picture = LARGER if number >= query.get("grow", 1e9) else PICTURES[number % 25]
                if number % query.get("spoil", 1e9) == query.get("spoil", 0) - 1:
                    picture = os.urandom(len(picture))
                while number >= query.get("flood", 1e9):
                    self.wfile.write(os.urandom(65_536))
                    time.sleep(0.01)
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
