"""Certificates of https and rtsps servers."""

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.live.status import Status
from foveate.pipeline.settings import Settings
from foveate.pipeline.stream import Stream, open_stream


def opened(address: str, told: list[Status] | None = None, **live: Any) -> Stream:
    listener = None if told is None else told.append
    limits = {"connect_timeout": 8.0, "stall_timeout": 3.0}
    return open_stream(address, Settings(budget=40), listener=listener, live={**limits, **live})


@pytest.fixture(params=["https", "rtsps"])
def secure(request: pytest.FixtureRequest, tls: Any) -> tuple[str, int, Path]:
    """Scheme and path, port and certificate of a server; {} stands for its host."""
    if request.param == "https":
        port, certificate = tls(request.getfixturevalue("mjpeg").port)
        return f"https://user:geheim77@{{}}:{port}/stream", port, certificate
    server, address = request.getfixturevalue("rtsp")()
    port, certificate = tls(server.port)
    return f"rtsps://user:geheim77@{{}}:{port}/{address.rpartition('/')[2]}", port, certificate


def test_a_certificate_that_is_trusted(secure: tuple[str, int, Path]) -> None:
    address, _, certificate = secure
    with opened(address.format("localhost"), ca_file=str(certificate)) as stream:
        assert len(list(islice(stream, 5))) == 5


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_one_that_is_not_is_refused_once(secure: tuple[str, int, Path], host: str) -> None:
    """Self-signed; or trusted, but made out to localhost only."""
    address, _, certificate = secure
    trusted = {} if host == "localhost" else {"ca_file": str(certificate)}
    why = "self-signed certificate" if host == "localhost" else "ip address mismatch"
    told: list[Status] = []
    with pytest.raises(SourceError, match=f"the server's certificate is not trusted: {why}") as caught:
        opened(address.format(host), told, wait=True, **trusted)
    assert "geheim77" not in str(caught.value)
    assert [(status.state, status.tries) for status in told] == [("failed", 1)]


def test_anyone_is_believed_where_that_is_wanted(secure: tuple[str, int, Path]) -> None:
    with opened(secure[0].format("127.0.0.1"), verify=False) as stream:
        assert len(list(islice(stream, 5))) == 5


@pytest.mark.parametrize(("content", "said"), [(None, "no such file"), ("nothing", "no certificate")])
def test_a_file_that_vouches_for_nobody(content: str | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "authorities.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SettingsError, match=f"(?i)live.ca_file .*{said}"):
        opened("https://127.0.0.1:9/", ca_file=str(file))


@pytest.fixture
def playlist(tmp_path: Path) -> Iterator[int]:
    """The port of a server with an HLS playlist, all.m3u8."""
    source = ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=4"]
    encode = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p"]
    form = ["-hls_time", "1", "-hls_list_size", "0", str(tmp_path / "all.m3u8")]
    subprocess.run(["ffmpeg", "-v", "error", *source, *encode, *form], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def test_segments_that_cannot_be_verified_are_not_read(tls: Any, playlist: int) -> None:
    port, certificate = tls(playlist)
    address = f"https://localhost:{port}/all.m3u8"
    with pytest.raises(SourceError, match="segments cannot be verified"):
        opened(address, ca_file=str(certificate), wait=True)
    with opened(address, verify=False, policy="every") as stream:
        assert len(list(stream)) == 100


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_rtmps_that_is_not_trusted(host: str, tls: Any, silent: int) -> None:
    """Self-signed; or trusted, but made out to localhost only. The server behind would keep silent."""
    port, certificate = tls(silent)
    trusted = {} if host == "localhost" else {"ca_file": str(certificate)}
    with pytest.raises(SourceError, match="the server's certificate is not trusted"):
        opened(f"rtmps://{host}:{port}/live/door", connect_timeout=4.0, **trusted)
    with pytest.raises(SourceError, match=r"(no answer|no picture) within"):  # TLS was fine
        opened(f"rtmps://localhost:{port}/live/door", connect_timeout=2.0, ca_file=str(certificate))
