"""Fixtures for all rooms: the test inputs, made once per test session, and the real clips."""

import fcntl
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

_ROOT = Path(__file__).resolve().parent.parent
_SCRIPT = Path(__file__).resolve().parent / "cases" / "make_cases.sh"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu-required", action="store_true", help="fail where a test finds no GPU, instead of skipping")


@pytest.fixture(autouse=True)
def only_marked_tests_see_a_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that ``auto`` is the CPU engine in all other tests, also where there is a card."""
    if request.node.get_closest_marker("gpu") is None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # for the processes that a test starts
        monkeypatch.setattr("foveate.cuda.driver.device.gpu_problem", lambda: "hidden from this test")


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the inputs of tests/cases/make_cases.sh, shared by all workers of a session."""
    if shutil.which("ffmpeg") is None:
        pytest.fail("the ffmpeg program is missing; it makes the test inputs: apt-get install ffmpeg", False)
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done = shared / "cases", shared / "cases.done"
    with (shared / "cases.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            _make(folder)
            done.touch()
    return folder


def _make(folder: Path) -> None:
    made = subprocess.run(["bash", str(_SCRIPT)], cwd=folder, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.fail(f"{_SCRIPT.name} failed: {made.stderr.strip()}", False)


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder with the real clips."""
    return _ROOT / "sample_videos"


class Server:
    """A server on loopback, in a process of its own, that can be killed and started again at the same port."""

    def __init__(self, script: str, *arguments: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._command = [sys.executable, str(Path(__file__).parent / "servers" / script), *arguments, str(self.port)]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start, and wait until it listens."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + 20
        while True:
            assert self._process.poll() is None, "the server ended"
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < limit, "the server does not listen"
                time.sleep(0.05)

    def hang(self) -> None:
        """Let it do nothing any more, while its connections stay open."""
        assert self._process is not None, "the server has ended"
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """End it without a farewell."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def rtsp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., tuple[Server, str]]]:
    """Starts an RTSP server; returns it, and the address of a stream without an end: 320x240, 25 pictures a second."""
    folder = tmp_path_factory.mktemp("rtsp")
    servers = []

    def begin(size: str = "320x240") -> tuple[Server, str]:
        source = f"testsrc2=size={size}:rate=25:duration=20"
        encode = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p"]
        make = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, *encode, str(folder / "camera.mp4")]
        subprocess.run(make, check=True)
        servers.append(Server("rtsp.py", str(folder)))
        return servers[-1], f"rtsp://127.0.0.1:{servers[-1].port}/camera.mp4?play_count=0"

    yield begin
    for server in servers:
        server.kill()


@pytest.fixture
def server() -> Iterator[Callable[..., Server]]:
    """Starts the server of a script in servers/, with the arguments before its port."""
    started: list[Server] = []

    def begin(script: str, *arguments: str) -> Server:
        started.append(Server(script, *arguments))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


@pytest.fixture
def mjpeg() -> Iterator[Server]:
    """An MJPEG-over-HTTP server, see servers/mjpeg.py."""
    server = Server("mjpeg.py")
    yield server
    server.kill()


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[Callable[[int], tuple[int, Path]]]:
    """Puts TLS in front of a port; returns the port of that, and its certificate, which only it vouches for."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"]
    named = ["-subj", "/CN=test", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(["openssl", "req", *made, *named], check=True, capture_output=True)
    servers = []

    def begin(behind: int) -> tuple[int, Path]:
        servers.append(Server("tls.py", str(certificate), str(key), str(behind)))
        return servers[-1].port, certificate

    yield begin
    for server in servers:
        server.kill()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A tiny open_clip model with weights set by hand, see models/planted.py; its folder and weights as well."""
    reason = "needs torch and open_clip: pip install -e '.[clip]'"
    pytest.importorskip("torch", reason=reason)
    pytest.importorskip("open_clip", reason=reason)
    folder = tmp_path_factory.mktemp("planted")
    known = runpy.run_path(str(Path(__file__).parent / "models" / "planted.py"))
    return SimpleNamespace(folder=str(folder), weights=str(known["write"](folder)), expected=known["expected"])
