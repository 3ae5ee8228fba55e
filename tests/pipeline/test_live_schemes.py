"""Live streams by RTMP and UDP, from a real sender; what this PyAV cannot receive is told once."""

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Any

import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.live.status import Status
from foveate.pipeline.settings import Settings
from foveate.pipeline.stream import Stream, open_stream

Send = Callable[..., None]


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def send() -> Iterator[Send]:
    """Starts ffmpeg, which sends 25 pictures a second, in real time, to the address behind the given options."""
    source = ["-re", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=40", "-pix_fmt", "yuv420p"]
    encode = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "10"]
    running = []

    def begin(*options: str) -> None:
        command = ["ffmpeg", "-v", "error", *source, *encode, *options]
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    yield begin
    for each in running:
        each.kill()
        each.wait()


def opened(address: str, told: list[Status] | None = None, **live: Any) -> Stream:
    limits = {"connect_timeout": 5.0, "stall_timeout": 1.0, **live}
    return open_stream(address, Settings(budget=40), listener=None if told is None else told.append, live=limits)


def check_pictures(stream: Stream) -> None:
    got = list(islice(stream, 40))
    assert (got[0].width, got[0].height) == (320, 240)
    steps = [after.time - before.time for before, after in pairwise(got) if after.index == before.index + 1]
    assert len(steps) > 20
    assert sorted(steps)[len(steps) // 2] == pytest.approx(0.04, abs=0.002)  # FLV counts milliseconds
    assert stream.status is not None
    assert (stream.status.state, stream.status.connections) == ("streaming", 1)


def test_rtmp(send: Send, port: int) -> None:
    address = f"rtmp://127.0.0.1:{port}/live/door"
    send("-f", "flv", "-listen", "1", address)
    with opened(address, wait=True) as stream:  # until the sender listens
        check_pictures(stream)


def test_rtmp_where_nobody_listens_or_answers(port: int, silent: int) -> None:
    with pytest.raises(SourceError, match="connection refused"):
        opened(f"rtmp://127.0.0.1:{port}/live/door")
    with pytest.raises(SourceError, match=r"(no answer|no picture) within 1 s"):
        opened(f"rtmp://127.0.0.1:{silent}/live/door", connect_timeout=1.0)


def test_udp(send: Send, port: int) -> None:
    address = f"udp://127.0.0.1:{port}"
    send("-f", "mpegts", address)
    with opened(address) as stream:
        check_pictures(stream)


def test_udp_that_stops_is_stalled_and_comes_back(send: Send, port: int) -> None:
    told: list[Status] = []
    address = f"udp://127.0.0.1:{port}"
    send("-t", "2", "-f", "mpegts", address)
    with opened(address, told) as stream:
        next(stream)
        timer = threading.Timer(4.0, send, ["-f", "mpegts", address])  # from its beginning, as after a restart
        timer.start()
        later = next(selection for selection in stream if selection.time > 3.0)
        timer.join()
    assert later.index > 20
    assert [status.state for status in told][:2] == ["streaming", "stalled"]
    assert [status.state for status in told][-2:] == ["streaming", "closed"]


def test_udp_from_nobody(port: int) -> None:
    with pytest.raises(SourceError, match=r"(no answer|no picture) within 1 s"):
        opened(f"udp://127.0.0.1:{port}", connect_timeout=1.0)


def test_srt_which_this_ffmpeg_has_not_is_told_once_with_a_way_out(port: int) -> None:
    told: list[Status] = []
    with pytest.raises(SourceError, match=r"has no srt://; .* -c copy -f mpegts udp://") as caught:
        opened(f"srt://127.0.0.1:{port}", told, wait=True)
    assert "\n" not in str(caught.value)
    assert [(status.state, status.tries) for status in told] == [("failed", 1)]
