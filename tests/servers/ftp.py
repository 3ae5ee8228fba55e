"""An FTP server of files for tests, with only what reading needs. Arguments: folder, port.

Lets in user with geheim77, and anonymous.
"""

import contextlib
import socket
import sys
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

FOLDER = Path(sys.argv[1])


def answers(handler):
    """The commands, by name."""

    def user(name):
        handler.name = name
        return "331 password"

    def password(word):
        return (
            "230 welcome" if (handler.name, word) == ("user", "geheim77") or handler.name == "anonymous" else "530 no"
        )

    def size(name):
        path = FOLDER / name
        return f"213 {path.stat().st_size}" if path.is_file() else "550 no such file"

    def rest(place):
        handler.begin = int(place)
        return "350 from there"

    def epsv(_):
        handler.passive = socket.create_server(("127.0.0.1", 0))
        return f"229 entering (|||{handler.passive.getsockname()[1]}|)"

    def pasv(_):
        epsv(_)
        port = handler.passive.getsockname()[1]
        return f"227 entering (127,0,0,1,{port // 256},{port % 256})"

    def retr(name):
        path = FOLDER / name
        if not path.is_file():
            return "550 no such file"
        handler.say("150 here it comes")
        data, _ = handler.passive.accept()
        with data, handler.passive:
            data.sendall(path.read_bytes()[handler.begin :])
        handler.begin = 0
        return "226 done"

    return {
        "USER": user,
        "PASS": password,
        "TYPE": lambda _: "200 binary",
        "SIZE": size,
        "REST": rest,
        "EPSV": epsv,
        "PASV": pasv,
        "RETR": retr,
    }


class Handler(StreamRequestHandler):
    """One session (RFC 959): passive, binary, with REST and SIZE (RFC 3659)."""

    def handle(self):
        """Answer until the client leaves."""
        self.name, self.begin, self.passive = "", 0, None
        known = answers(self)
        with contextlib.suppress(OSError):
            self.say("220 ready")
            for line in self.rfile:
                command, _, argument = line.decode().strip().partition(" ")
                self.say(known[command](argument) if command in known else "502 not known")

    def say(self, text):
        """Send one line."""
        self.wfile.write(f"{text}\r\n".encode())


ThreadingTCPServer.daemon_threads = ThreadingTCPServer.allow_reuse_address = True
ThreadingTCPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
