"""``foveate live`` with its sources in several processes: one page over all, and one that is killed alone."""

import json
import os
import re
import signal
import time
import urllib.error
import urllib.request
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foveate.app.console import Console
from foveate.app.live.arguments import LiveArguments, live_arguments
from foveate.app.live.latency import Histogram
from foveate.app.live.processes import ProcessGroup
from foveate.app.live.report import Report
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import Settings
from tests.waiting import wait_for


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().rpartition(b"\n")[0].splitlines()[1:]]


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Cameras:
    """Four sources in two processes."""

    def __init__(self, start: Any, mjpeg: Any, folder: Path, *flags: str) -> None:
        self.names = [f"http://127.0.0.1:{mjpeg.port}/stream?rate=20&camera={number}" for number in range(4)]
        self.files = [folder / f"tokens-{number}.jsonl" for number in range(4)]
        self._log = folder / "log"
        out = ("-o", str(folder / "tokens-{}.jsonl"), "--budget", "40")
        with self._log.open("wb") as log:
            self.process = start("live", *self.names, "--processes", "2", *out, *flags, stderr=log)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def get(self, path: str) -> tuple[int, str]:
        page = re.search(r"the page is at (\S+)", self.log)
        assert page is not None, self.log
        return self.ask(page[1] + path)

    def post(self, path: str, wishes: Any) -> tuple[int, str]:
        page = re.search(r"the page is at (\S+)", self.log)
        assert page is not None
        kind = {"Content-Type": "application/json"}
        return self.ask(urllib.request.Request(page[1] + path, json.dumps(wishes).encode(), kind))

    @staticmethod
    def ask(request: Any) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode("latin-1")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def counted(self, name: str) -> list[float]:
        """A counter of each source."""
        found = re.findall(rf"foveate_{name}\{{.*?source=\"(\d)\"\}} (\S+)", self.get("metrics")[1])
        return [float(value) for _, value in sorted(found)]


def test_one_page_over_all_and_a_process_that_is_killed(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    cameras = Cameras(start, mjpeg, tmp_path, "--web", "127.0.0.1:0")
    wait_for(lambda: "the page is at" in cameras.log)
    assert cameras.get("healthz")[0] == 503  # none streams yet
    wait_for(lambda: cameras.get("healthz")[0] == 200)
    status = json.loads(cameras.get("status")[1])["sources"]
    assert [source["number"] for source in status] == [0, 1, 2, 3]
    assert [source["name"] for source in status] == cameras.names
    assert cameras.get("stills/3")[1].startswith("\xff\xd8\xff")  # a JPEG
    assert cameras.get("frames/4")[0] == 404
    assert cameras.post("controls/2", {"budget": 7})[0] == 200
    refused = cameras.post("controls/2", {"budget": -1})
    assert refused == (422, "budget must be greater than or equal to 1, got -1\n")
    wait_for(lambda: len(records(cameras.files[2])[-1]["x"]) <= 7)

    first, second = children(cameras.process.pid)
    wait_for(lambda: min(map(lines, cameras.files)) > 20)
    wait_for(lambda: min(cameras.counted("records_total")) > 20)
    before, seen = cameras.counted("records_total"), len(records(cameras.files[3]))
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: "was killed by SIGKILL; it is started again" in cameras.log)
    wait_for(lambda: cameras.get("healthz")[0] == 503)
    assert [source["state"] for source in json.loads(cameras.get("status")[1])["sources"]][2:] == ["streaming"] * 2
    wait_for(lambda: cameras.get("healthz")[0] == 200)
    wait_for(lambda: min(cameras.counted("records_total")[:2]) > max(before[:2]) + 10)
    assert second in children(cameras.process.pid)
    assert cameras.counted("latency_seconds_count") >= before
    assert cameras.counted("connections_total") == [2, 2, 1, 1]

    cameras.process.send_signal(signal.SIGTERM)
    assert cameras.process.wait(15) == 143
    others = records(cameras.files[3])
    assert len(others) > seen
    steps = [after["index"] - before["index"] for before, after in pairwise(others)]
    assert set(steps) == {1}  # undisturbed
    assert (tmp_path / "tokens-0-000001.jsonl").exists()  # what the killed process wrote is kept
    assert not any(running(pid) for pid in (first, second))


def test_a_process_that_hangs_holds_up_nothing(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    """Its sources count as stalled, until it goes on."""
    cameras = Cameras(start, mjpeg, tmp_path, "--web", "127.0.0.1:0")
    wait_for(lambda: "the page is at" in cameras.log)
    wait_for(lambda: cameras.get("healthz")[0] == 200)
    first, _ = children(cameras.process.pid)

    def states() -> list[tuple[str, str]]:
        return [(each["state"], each["reason"]) for each in json.loads(cameras.get("status")[1])["sources"]]

    os.kill(first, signal.SIGSTOP)
    try:
        wait_for(lambda: states()[:2] == [("stalled", "its process does not answer")] * 2)
        assert states()[2:] == [("streaming", "")] * 2
        assert cameras.get("stills/0")[0] == 204
        assert cameras.post("controls/0", {"budget": 7}) == (422, "the source's process does not answer\n")
        assert cameras.get("stills/2")[0] == 200
    finally:
        os.kill(first, signal.SIGCONT)
    wait_for(lambda: states() == [("streaming", "")] * 4)


def test_all_ends_when_the_time_is_over(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    cameras = Cameras(start, mjpeg, tmp_path, "--duration", "15s")  # of which starting takes some
    assert cameras.process.wait(60) == 0, cameras.log
    for name, file in zip(cameras.names, cameras.files, strict=True):
        found = re.search(rf"{re.escape(name)}: closed\n  (\d+) frames in", cameras.log)
        assert found is not None, cameras.log
        assert int(found[1]) == len(records(file)) > 0


def test_no_process_outlasts_the_main_one(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    """They finish their outputs, and end."""
    cameras = Cameras(start, mjpeg, tmp_path)
    wait_for(lambda: min(map(lines, cameras.files)) > 5)
    left = children(cameras.process.pid)
    cameras.process.kill()
    wait_for(lambda: not any(running(pid) for pid in left), 10)


def test_sources_that_end_by_themselves(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    cameras = Cameras(start, mjpeg, tmp_path, "--max-frames", "5", "-q")
    assert cameras.process.wait(30) == 0, cameras.log
    assert cameras.log == ""
    assert [len(records(file)) for file in cameras.files] == [5] * 4


def test_one_that_cannot_be_opened_stops_no_other(start: Any, mjpeg: Any, closed: int, tmp_path: Path) -> None:
    good, bad = f"http://127.0.0.1:{mjpeg.port}/stream", f"http://127.0.0.1:{closed}/none"
    out = ("-o", str(tmp_path / "{}.jsonl"), "--max-frames", "5")
    process = start("live", good, bad, "--processes", "2", *out)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"source 1 failed: " in err
    assert len(records(tmp_path / "0.jsonl")) == 5


@pytest.fixture
def closed() -> int:
    """A port at which nobody listens."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("count", "flags", "expected"),
    [(1, [], 1), (25, [], 1), (26, [], 2), (100, [], 4), (3, ["--processes", "3"], 3), (60, ["--processes", "1"], 1)],
)
def test_how_many_processes(count: int, flags: list[str], expected: int) -> None:
    addresses = [f"rtsp://camera/{number}" for number in range(count)]
    parsed = live_arguments([*addresses, "-o", "{}.jsonl", *flags], Console())
    assert parsed.processes == expected


@pytest.mark.parametrize(("number", "why"), [("0", "at least 1|greater"), ("3", "at most the number of sources, 2")])
def test_numbers_of_processes_that_are_refused(number: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        live_arguments(["rtsp://a/1", "rtsp://a/2", "-o", "{}.jsonl", "--processes", number], Console())


def arguments(count: int, processes: int, **settings: Any) -> LiveArguments:
    return LiveArguments(
        tuple(f"rtsp://camera/{number}" for number in range(count)), Settings(**settings), processes=processes
    )


@pytest.mark.parametrize(
    ("cards", "device", "expected"), [(2, None, [0, 1, 0]), (1, None, [None] * 3), (2, 1, [1] * 3)]
)
def test_processes_are_spread_over_all_gpus(
    monkeypatch: pytest.MonkeyPatch, cards: int, device: int | None, expected: list[int | None]
) -> None:
    monkeypatch.setattr("foveate.app.live.processes.gpu_count", lambda settings: cards)
    group = ProcessGroup(arguments(8, 3, device=device), Console(), lambda: None)
    assert [process.settings.device for process in group.processes] == expected
    assert [process.numbers for process in group.processes] == [(0, 1), (2, 3, 4), (5, 6, 7)]


def test_a_process_that_ends_again_and_again_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("foveate.app.live.processes.sys.executable", "/bin/false")
    monkeypatch.setattr("foveate.app.live.processes.Backoff.pause", lambda self: 0.0)
    group = ProcessGroup(arguments(2, 2, engine="cpu"), Console(), lambda: None)
    group.start()
    limit = time.monotonic() + 20
    while group.alive:
        assert time.monotonic() < limit
        group.check()
        time.sleep(0.01)
    told = capsys.readouterr().err
    assert told.count("the process of sources 0 to 0 ended with 1; it is started again") == 4
    assert "the process of sources 0 to 0 ended with 1 5 times in a row, and is not started again" in told
    assert [(report.state, report.error) for report in group.reports()] == [("failed", "its process ended with 1")] * 2


def test_a_process_that_hangs_is_killed_and_started_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Here it is one that sleeps, and a clock that runs fast."""
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nexec sleep 600\n")
    sleeper.chmod(0o700)
    now = [1000.0]
    monkeypatch.setattr("foveate.app.live.processes.sys.executable", str(sleeper))
    monkeypatch.setattr("foveate.app.live.processes.time.monotonic", lambda: now[0])
    (process,) = ProcessGroup(arguments(1, 1, engine="cpu"), Console(), lambda: None).processes
    process.start()
    now[0] += 5000.0  # as if this process had been stopped for so long
    for _ in range(60):
        process.check()
        now[0] += 1.0
    assert capsys.readouterr().err == ""
    limit = time.perf_counter() + 10
    while not (told := capsys.readouterr().err):
        assert time.perf_counter() < limit
        process.check()
        now[0] += 1.0
        time.sleep(0.01)
    assert told == (
        "foveate: warning: the process of sources 0 to 0 did not answer for 60 s and was killed; it is started again\n"
    )
    assert process.alive
    process.end(0.0)
    process.join(0.0)


def test_counts_go_on_behind_those_of_a_process_that_was_killed() -> None:
    before = Report(3, "camera", "reconnecting", frames=5, tokens=50, received=6, dropped=1, connections=1)
    after = Report(3, "camera", "streaming", frames=2, tokens=20, received=2, connections=1).behind(before)
    assert (after.frames, after.tokens, after.received, after.dropped, after.connections) == (7, 70, 8, 1, 2)
    assert after.state == "streaming"


def test_histograms_add_up() -> None:
    one, two = Histogram((0, 1) + (2,) * 12, 0.5), Histogram((1, 1) + (1,) * 12, 0.25)
    assert one.plus(two) == Histogram((1, 2) + (3,) * 12, 0.75)
    assert Histogram.empty().plus(one) == one
