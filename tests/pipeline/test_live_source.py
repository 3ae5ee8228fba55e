"""Live sources against real servers on loopback."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice, pairwise
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.live.backoff import Backoff
from foveate.pipeline.live.connection import Connection
from foveate.pipeline.live.source import LiveSource
from foveate.pipeline.live.status import Status
from foveate.pipeline.settings import LiveSettings, Settings, SourceSettings
from foveate.pipeline.stream import Stream, open_stream

QUICK = {"connect_timeout": 3.0, "stall_timeout": 0.7}


def opened(address: str, told: list[Status] | None = None, **live: Any) -> Stream:
    listener = None if told is None else told.append
    return open_stream(address, Settings(budget=60), listener=listener, live={**QUICK, **live})


def states(told: list[Status]) -> list[str]:
    return [status.state for status in told]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """A connection that was given up while it stalled ends within twice the stall time."""
    yield
    limit = time.monotonic() + 5
    while any(thread.name.startswith("foveate-") for thread in threading.enumerate()):
        assert time.monotonic() < limit, threading.enumerate()
        time.sleep(0.05)


def test_pictures_come_with_their_times(rtsp: Any) -> None:
    _, address = rtsp()
    told: list[Status] = []
    begin = time.time()
    with opened(address, told) as stream:
        assert (stream.info.width, stream.info.height, stream.info.frames) == (320, 240, None)
        got = list(islice(stream, 50))
        status = stream.status
    assert [selection.index for selection in got] == sorted({selection.index for selection in got})
    timed = got[1:]  # the first picture of a session may come without a timestamp
    steps = [after.time - before.time for before, after in pairwise(timed) if after.index == before.index + 1]
    assert steps == pytest.approx([0.04] * len(steps), abs=0.001)  # 90 kHz ticks
    for selection in got:
        extras = selection.extras
        assert begin < extras["captured"] <= extras["arrived"] + 1e-3 <= time.time() + 1e-3
        assert 0 < extras["latency"] < 5
    assert status is not None
    assert (status.state, status.connections, status.name) == ("streaming", 1, address)
    assert states(told) == ["streaming", "closed"]


def test_a_slow_consumer_sees_fresh_frames_and_every_drop_is_counted(rtsp: Any) -> None:
    """Case L1, in short: at 200 ms a frame the age stays below 1 s, and does not grow."""
    _, address = rtsp()
    ages, indices, held = [], [], []
    with opened(address) as stream:
        for selection in islice(stream, 25):
            held.append((threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))))
            ages.append(time.time() - selection.extras["arrived"])
            indices.append(selection.index)
            time.sleep(0.2)
        status = stream.status
    assert max(ages[3:]) <= 1.0
    assert len(set(held[3:])) == 1  # threads and descriptors
    assert indices[-1] > 70  # 25 frames of 0.2 s are 125 pictures; those that wait are not counted yet
    assert status is not None
    skipped = indices[-1] + 1 - len(indices)
    assert 0 <= status.dropped - skipped <= 30  # those dropped since the last one seen
    assert status.received - status.dropped - len(indices) <= 5 + 2  # those that wait, and those in flight


def test_every_drops_none(rtsp: Any) -> None:
    _, address = rtsp()
    with opened(address, policy="every") as stream:
        indices = []
        for selection in islice(stream, 40):
            indices.append(selection.index)
            time.sleep(0.05)
        assert stream.status is not None
        assert stream.status.dropped == 0
    assert indices == list(range(40))


@pytest.mark.parametrize("asked", [{"fps": 5}, {"every": 5}])
def test_pictures_that_are_not_asked_for_are_no_loss(rtsp: Any, asked: dict[str, float]) -> None:
    """Of 25 pictures a second."""
    _, address = rtsp()
    with open_stream(address, Settings(budget=60), live={**QUICK, "policy": "every"}, source=asked) as stream:
        got = list(islice(stream, 8))
        assert stream.status is not None
        assert stream.status.dropped == 0
        assert stream.status.received > 30
    assert [after.index - before.index for before, after in pairwise(got)][1:] == [5] * 6


def test_a_server_that_restarts(rtsp: Any) -> None:
    """Case L2: reconnected within 5 s of its return, at most 2 tries a second, and the end is never taken for one."""
    server, address = rtsp()
    told: list[Status] = []
    with opened(address, told) as stream:
        list(islice(stream, 20))
        before = next(stream)
        server.kill()
        begin = time.monotonic()
        threading.Timer(2.0, server.start).start()
        later = next(selection for selection in stream if selection.keyframe == "discontinuity")
        status = stream.status
    assert status is not None
    assert time.monotonic() - begin < 2.0 + 5.0 + 5.0  # the server's own start takes a while
    assert later.index > before.index
    assert later.time - before.time == pytest.approx(time.monotonic() - begin, abs=3)
    assert status.connections == 2
    assert status.tries - 1 <= 2 * (time.monotonic() - begin)
    assert states(told)[:2] == ["streaming", "reconnecting"]
    assert states(told)[-2:] == ["streaming", "closed"]


def test_a_server_that_hangs_is_given_up_without_a_late_picture(rtsp: Any) -> None:
    """Its connection stays open. libav's parser holds one more picture, which would be as old as the silence."""
    server, address = rtsp()
    told: list[Status] = []
    with opened(address, told) as stream:
        list(islice(stream, 20))
        server.hang()
        limit = time.monotonic() + 30
        reader = threading.Thread(target=lambda: list(stream), daemon=True)
        reader.start()
        while "reconnecting" not in states(told):
            assert time.monotonic() < limit
            time.sleep(0.02)
        stream.cancel()
        reader.join(10)
    assert states(told)[:3] == ["streaming", "stalled", "reconnecting"]
    assert told[2].reason == "nothing came any more"


def test_a_sender_that_falls_silent_is_stalled_and_resumes(mjpeg: Any) -> None:
    """Case L3: on the same connection."""
    told: list[Status] = []
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?stop=10&pause=1.1", told) as stream:
        got = list(islice(stream, 18))
        assert stream.status is not None
        assert stream.status.connections == 1
    assert states(told) == ["streaming", "stalled", "streaming", "closed"]
    assert 0.7 <= told[1].since - told[0].since <= 0.7 + 10 / 25 + 1.0
    gap = max(after.time - before.time for before, after in pairwise(got))
    assert gap == pytest.approx(1.14, abs=0.3)  # no timestamps: the arrivals'


def test_a_sender_that_stays_silent_is_connected_anew(mjpeg: Any) -> None:
    told: list[Status] = []
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?stop=10", told) as stream:
        got = list(islice(stream, 13))
    assert states(told) == ["streaming", "stalled", "reconnecting", "streaming", "closed"]
    assert "discontinuity" in [selection.keyframe for selection in got]


def test_a_sender_that_hangs_up_is_not_the_end(mjpeg: Any) -> None:
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?end=5") as stream:
        indices = [selection.index for selection in islice(stream, 12)]
    assert indices[-1] >= 11
    assert stream.info.notes == ("no timestamps: times are those of arrival",)


def test_a_sender_that_hangs_up_again_and_again_is_tried_less_often(
    mjpeg: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = []

    class Impatient(Backoff):
        def pause(self) -> float:
            pauses.append(super().pause())
            return 0.01

    monkeypatch.setattr("foveate.pipeline.live.source.Backoff", Impatient)
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?end=2", retry_pause=600) as stream:
        list(islice(stream, 10))
    assert all(0.5 * 2**number <= pause <= 0.625 * 2**number for number, pause in enumerate(pauses[:4]))
    assert len(pauses) >= 4


def test_counts_never_fall_while_it_connects_again(mjpeg: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor takes a counter that falls for one that began anew."""
    counts = []

    class Watched(Connection):
        def __init__(self, *arguments: Any) -> None:
            counts.extend(source.status.received for source in sources)
            super().__init__(*arguments)

    sources: list[LiveSource] = []
    monkeypatch.setattr("foveate.pipeline.live.source.Connection", Watched)
    live = LiveSettings(**QUICK, policy="every")
    sources.append(LiveSource(f"http://127.0.0.1:{mjpeg.port}/stream?end=5", live, SourceSettings()))
    with closing(sources[0]) as source:
        got = list(islice(source, 11))
    assert [frame.index for frame in got] == list(range(11))
    assert counts == [5, 10]


def test_nothing_is_forgotten_while_it_connects_again(mjpeg: Any) -> None:
    """Asked at any moment, also while a new connection has brought no picture yet."""
    seen = []
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?end=5") as stream:
        list(islice(stream, 3))
        mjpeg.kill()
        assert stream.status is not None
        threading.Timer(2.0, mjpeg.start).start()
        reader = threading.Thread(target=lambda: list(islice(stream, 5)))
        reader.start()
        while reader.is_alive():
            seen.append(stream.status)
            time.sleep(0.005)
    assert {"reconnecting", "streaming"} <= {status.state for status in seen}
    assert all(after.received >= before.received >= 3 for before, after in pairwise(seen))
    assert all(after.dropped >= before.dropped for before, after in pairwise(seen))
    assert all(after.arrived is not None and after.arrived >= (before.arrived or 0) for before, after in pairwise(seen))


def test_a_reader_who_takes_his_time_does_not_make_the_source_silent(mjpeg: Any) -> None:
    """By the policy ``every`` the sender has to wait, and pictures are there all the time."""
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?rate=100", policy="every", stall_timeout=0.5) as stream:
        next(stream)
        time.sleep(1.5)
        assert stream.status is not None
        assert stream.status.state == "streaming"


@pytest.mark.parametrize("scheme", ["rtsp", "http"])
def test_an_address_that_accepts_and_never_answers(scheme: str, silent: int) -> None:
    """Case L4: an error at the time limit + 1 s at most."""
    begin = time.monotonic()
    with pytest.raises(SourceError, match=r"a: (no answer|no picture) within 1 s"):
        opened(f"{scheme}://127.0.0.1:{silent}/a", connect_timeout=1.0)
    assert 0.9 < time.monotonic() - begin < 5.0  # 2 s where the machine is not busy


def test_a_refused_password_is_not_tried_again(mjpeg: Any) -> None:
    told: list[Status] = []
    address = f"http://user:secret@127.0.0.1:{mjpeg.port}"
    with pytest.raises(SourceError, match="refused the user or password") as caught:
        opened(f"{address}/refused", told, wait=True)
    assert "secret" not in str(caught.value)
    assert [(status.state, status.tries) for status in told] == [("failed", 1)]


class _Unauthorized(BaseRequestHandler):
    """An RTSP server that refuses everybody (RFC 2326, 11.1)."""

    def handle(self) -> None:
        while request := self.request.recv(4096):
            number = next(line for line in request.split(b"\r\n") if line.lower().startswith(b"cseq"))
            self.request.sendall(
                b'RTSP/1.0 401 Unauthorized\r\n%s\r\nWWW-Authenticate: Basic realm="a"\r\n\r\n' % number
            )


def test_rtsp_that_refuses_the_password() -> None:
    told: list[Status] = []
    with ThreadingTCPServer(("127.0.0.1", 0), _Unauthorized) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(SourceError, match="refused the user or password"):
            opened(f"rtsp://user:secret@127.0.0.1:{server.server_address[1]}/a", told, wait=True)
        server.shutdown()
    assert [(status.state, status.tries) for status in told] == [("failed", 1)]


def test_a_password_refused_later_ends_the_stream(mjpeg: Any) -> None:
    told: list[Status] = []
    with opened(f"http://user:secret@127.0.0.1:{mjpeg.port}/once?end=3", told) as stream:
        with pytest.raises(SourceError, match="refused the user or password"):
            list(stream)
        assert stream.status is not None
        assert stream.status.state == "failed"
    assert "secret" not in repr(told)


def test_waiting_for_a_server_that_is_not_there_yet(mjpeg: Any) -> None:
    mjpeg.kill()
    told: list[Status] = []
    threading.Timer(0.8, mjpeg.start).start()
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream", told, wait=True) as stream:
        assert next(stream).index == 0
    assert states(told) == ["reconnecting", "streaming", "closed"]


def test_a_stream_that_stalls_can_be_closed_at_once(mjpeg: Any) -> None:
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?stop=5", stall_timeout=1.5) as stream:
        list(islice(stream, 4))
        time.sleep(0.5)
        begin = time.monotonic()
    assert time.monotonic() - begin < 5.0


def test_a_silence_shows_also_while_nobody_takes_pictures(mjpeg: Any) -> None:
    with opened(f"http://127.0.0.1:{mjpeg.port}/stream?stop=30") as stream:
        next(stream)
        time.sleep(30 / 25 + 0.7 + 0.5)
        status = stream.status
        assert status is not None
        assert (status.state, status.received) == ("stalled", 30)
        assert 30 - 1 - 5 - 2 <= status.dropped <= 30 - 1  # at most 5 wait and 2 are in flight


def test_a_film_on_a_web_server_ends(cases: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(cases)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with opened(f"http://127.0.0.1:{server.server_port}/T8_one.mp4", policy="every") as stream:
            assert [selection.index for selection in stream] == [0]
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def test_twenty_starts_and_stops_leave_nothing(mjpeg: Any) -> None:
    """Case L6."""
    address = f"http://127.0.0.1:{mjpeg.port}/stream"
    with opened(address) as stream:  # what is loaded once stays open
        next(stream)
    time.sleep(0.2)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for count in range(20):
        with opened(address) as stream:
            list(islice(stream, count % 3))
    limit = time.monotonic() + 5
    while len(list(Path("/proc/self/fd").iterdir())) > before:
        assert time.monotonic() < limit, "a descriptor is left"
        time.sleep(0.05)


@pytest.mark.parametrize("address", ["97", "/dev/video97"])
def test_a_camera_that_is_not_there(address: str) -> None:
    """Case L11."""
    with pytest.raises(SourceError, match=r"there is no camera at /dev/video97"):
        opened(address)


@pytest.mark.parametrize("scheme", ["rtsp", "http", "https"])
def test_a_host_that_is_not_known(scheme: str) -> None:
    nowhere = 64 * "a"  # longer than a label may be (RFC 1035, 2.3.4), so that no other machine is asked
    with pytest.raises(SourceError, match="its host name is not known; check the address and the network"):
        open_stream(f"{scheme}://{nowhere}/a")


def test_a_server_that_sends_by_tcp_only(rtsp: Any) -> None:
    with pytest.raises(SourceError, match=r"refuses this live\.transport; choose the other one"):
        open_stream(rtsp()[1], live={"transport": "udp"})


def test_an_unknown_kind_of_address() -> None:
    with pytest.raises(SourceError, match="sftp:// cannot be read; download the file first"):
        opened("sftp://127.0.0.1/a.mp4")
