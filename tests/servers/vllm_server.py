"""A vLLM on loopback that serves a small model of random weights with the plugin."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

NAME = "small"
_START = 400  # seconds
_ANSWER = 120
ENVIRONMENT = {
    "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1",
}  # fmt: skip


class VllmServer:
    """Entered, it serves the model in ``folder`` under ``NAME``, in processes of its own that end with it."""

    def __init__(self, folder: Path, architecture: str, longest: int, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        program = Path(__file__).with_name("vllm_program.py")
        self._command = [
            sys.executable, str(program), "serve", str(folder), "--host", "127.0.0.1", "--port", str(self.port),
            "--served-model-name", NAME, "--dtype", "float32", "--enforce-eager", "--max-model-len", str(longest),
            "--enable-mm-embeds", "--hf-overrides", json.dumps({"architectures": [architecture]}),
            "--max-logprobs", "256", "--limit-mm-per-prompt", json.dumps({"image": 8, "video": 0}),
        ]  # fmt: skip
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Raises RuntimeError where it does not answer within a few minutes."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env={**os.environ, **ENVIRONMENT}, start_new_session=True
            )
        limit = time.monotonic() + _START
        while not self.healthy():
            if self._process.poll() is not None or time.monotonic() > limit:
                self.__exit__()
                raise RuntimeError(f"vLLM does not serve: {self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(1)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)

    @property
    def address(self) -> str:
        """As clients are given it."""
        return f"http://127.0.0.1:{self.port}"

    def healthy(self) -> bool:
        """Whether it and its engine say that they are well."""
        try:
            return self._asked("GET", "/health", None)[0] == 200
        except OSError:
            return False

    def ask(self, message: dict[str, Any], **how: Any) -> tuple[int, dict[str, Any]]:
        """Status and answer to one message."""
        asked = {"model": NAME, "messages": [message], "max_tokens": 4, "temperature": 0} | how
        status, page = self._asked("POST", "/v1/chat/completions", json.dumps(asked).encode())
        return status, json.loads(page)

    def _asked(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
