"""A server that speaks OpenAI's protocol as far as streamed answers go, and misbehaves where told to.

It answers only requests of the right shape: what else comes is answered with 400, and with what is wrong about it.
"""

import base64
import contextlib
import io
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import cv2
import numpy as np

KEY = "sk-geheim77"
WORDS = ("Some", " people", " walk", " — slowly.")


def event(text: str | None, last: bool = False) -> bytes:
    """One event of a streamed answer."""
    delta = {"content": text} if text is not None else {"role": "assistant"}
    choice = {"index": 0, "delta": delta, "finish_reason": "stop" if last else None}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def checked(headers: Any, body: bytes) -> dict[str, Any]:
    """The request as plain data, its pictures decoded. Raises ValueError for what is wrong about it."""
    if headers["Content-Type"] != "application/json":
        raise ValueError("Content-Type must be application/json")
    asked = json.loads(body)
    if set(asked) != {"model", "messages", "max_tokens", "stream"} or asked["stream"] is not True:
        raise ValueError(f"unexpected fields: {sorted(asked)}")
    (message,) = asked["messages"]
    if set(message) != {"role", "content"} or message["role"] != "user":
        raise ValueError("there must be one message of the user")
    pictures, tokens, texts = [], [], []
    for part in message["content"]:
        if part["type"] == "text":
            texts.append(part["text"])
            continue
        if part["type"] == "image_embeds":
            files = {name: base64.b64decode(each, validate=True) for name, each in part["image_embeds"].items()}
            tokens.append({name: np.load(io.BytesIO(file), allow_pickle=False) for name, file in files.items()})
            continue
        kind, _, coded = part["image_url"]["url"].partition(",")
        if part["type"] != "image_url" or kind != "data:image/jpeg;base64":
            raise ValueError(f"no picture: {kind}")
        file = base64.b64decode(coded, validate=True)
        picture = cv2.imdecode(np.frombuffer(file, np.uint8), cv2.IMREAD_COLOR)
        if picture is None or file[:3] != b"\xff\xd8\xff":
            raise ValueError("a picture is no JPEG")
        pictures.append(picture[..., ::-1])
    return {**asked, "pictures": pictures, "tokens": tokens, "texts": texts, "key": headers["Authorization"]}


class ChatServer:
    """Entered, it serves on ``address``. ``asked`` holds the requests that were right, ``tries`` counts all.

    ``behaviours`` are taken one per request, the last one for all that follow: "answer", "401", "400", "429", "503",
    "hang up", "silent", "stops", "drips", "cut", "garbage", "page", "error", "empty".
    """

    def __init__(self, *behaviours: str) -> None:
        self.behaviours = list(behaviours or ("answer",))
        self.asked: list[dict[str, Any]] = []
        self.tries = 0
        self.words = WORDS
        self.over = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def do_POST(self) -> None:
                self.close_connection = True
                with contextlib.suppress(OSError):
                    server._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        behaviour = self.behaviours[min(self.tries, len(self.behaviours) - 1)]
        self.tries += 1
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        if handler.path != "/v1/chat/completions":
            self._refuse(handler, 404, {"detail": "Not Found"})
            return
        try:
            asked = checked(handler.headers, body)
        except (ValueError, KeyError, TypeError) as error:
            self._refuse(handler, 400, {"error": {"message": f"wrong request: {error}"}})
            return
        if asked["key"] not in (None, f"Bearer {KEY}"):
            self._refuse(handler, 401, {"error": {"message": f"no such key: {asked['key'].removeprefix('Bearer ')}"}})
            return
        self.asked.append(asked)
        if behaviour in ("400", "401", "429", "503"):
            self._refuse(handler, int(behaviour), {"error": {"message": f"the reason of {behaviour}\nin two lines"}})
        elif behaviour == "page":
            self._refuse(handler, 502, "<html>Bad Gateway</html>")
        elif behaviour == "silent":
            self.over.wait(10)
        elif behaviour != "hang up":
            self._answer(handler, behaviour)

    def _refuse(self, handler: BaseHTTPRequestHandler, status: int, said: Any) -> None:
        body = (said if isinstance(said, str) else json.dumps(said)).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        if status == 429:
            handler.send_header("Retry-After", "7")
        handler.end_headers()
        handler.wfile.write(body)

    def _answer(self, handler: BaseHTTPRequestHandler, behaviour: str) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

        def send(piece: bytes) -> None:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

        if behaviour == "garbage":
            send(b"hello, this is a printer\r\n")
        elif behaviour == "error":
            send(b'data: {"error": {"message": "out of memory"}}\n\n')
        elif behaviour == "drips":
            while not self.over.wait(0.05):
                send(b"x")
        elif behaviour != "empty":
            self._pieces(send, behaviour)
        if behaviour != "cut":
            send(b"")

    def _pieces(self, send: Any, behaviour: str) -> None:
        send(b": welcome\n\n" + event(None))
        for word in self.words:
            whole = event(word)
            send(whole[:9])  # events need not come in one piece
            send(whole[9:])
            if behaviour in ("cut", "stops"):
                self.over.wait(10 if behaviour == "stops" else 0)
                return
            time.sleep(0.01)
        send(event(None, last=True) + b'data: {"choices": [], "usage": {"prompt_tokens": 68}}\n\ndata: [DONE]\n\n')
