"""``foveate live`` as a real process, against real servers on loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet
import pytest

from foveate.app.addresses import resolved
from foveate.app.console import Console
from foveate.app.live.arguments import live_arguments
from foveate.app.live.command import tell_failures
from foveate.app.live.group import SourceGroup, end_workers
from foveate.app.live.report import Report
from foveate.app.quantities import seconds_in, size_or_seconds
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.sinks import read_shards
from tests.waiting import wait_for

QUICK = ("--stall-timeout", "0.8", "--connect-timeout", "3", "--budget", "40")


def records(path: Path) -> list[dict[str, Any]]:
    header, *rest = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert header["foveate"]
    return rest


def test_for_a_time(foveate: Any, rtsp: Any, tmp_path: Path) -> None:
    _, address = rtsp()
    file = tmp_path / "tokens.jsonl"
    code, out, err = foveate("live", address, *QUICK, "--duration", "2s", "-o", str(file))
    assert (code, out) == (0, ""), err
    got = records(file)
    assert 0 < len(got) <= 60  # fewer than 50 where the machine is busy
    assert {"captured", "arrived", "latency"} <= got[0].keys()
    assert re.search(r"latency from arrival to tokens: p50 [\d.]+ ms, p99 [\d.]+ ms", err)
    assert f"foveate: {address}: streaming" in err


def test_the_summary_counts_also_where_the_connection_is_lost_at_the_end(
    start: Any, mjpeg: Any, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.jsonl"
    address = f"http://127.0.0.1:{mjpeg.port}/stream"
    process = start("live", address, *QUICK, "--duration", "6s", "-o", str(file))
    wait_for(lambda: file.exists() and len(file.read_bytes().splitlines()) > 10)
    mjpeg.kill()
    _, err = process.communicate(timeout=20)
    said = re.search(r"received (\d+), dropped \d+; connections 1", err.decode())
    assert said is not None, err
    assert int(said[1]) >= len(records(file)) >= 10


@pytest.mark.parametrize("others", [0, 1])
def test_a_time_in_which_no_picture_came(others: int, foveate: Any, mjpeg: Any, silent: int, tmp_path: Path) -> None:
    """Silence is not success."""
    seen = [f"http://127.0.0.1:{mjpeg.port}/stream"] * others
    name = f"http://127.0.0.1:{silent}/a"
    flags = ("--connect-timeout", "60", "--wait", "--duration", "3s", "-q", "-o", str(tmp_path / "tokens-{}.jsonl"))
    code, _, err = foveate("live", *seen, name, *flags)
    assert code == 1
    assert f"{name}: no picture was received" in err
    assert (tmp_path / "tokens-0.jsonl").exists() == bool(others)


def test_a_source_that_still_connects_is_not_waited_for() -> None:
    """No call inside libav can be ended before its time limit."""
    calls: list[str] = []

    def worker(name: str, stream: Any) -> Any:
        return SimpleNamespace(
            stream=stream, stop=lambda: calls.append(f"stop {name}"), join=lambda _: calls.append(f"join {name}")
        )

    end_workers([worker("connecting", None), worker("streaming", object())], 10.0)
    assert calls == ["stop connecting", "stop streaming", "join streaming"]


def test_so_many_frames_on_standard_output(foveate: Any, mjpeg: Any) -> None:
    code, out, err = foveate("live", f"http://127.0.0.1:{mjpeg.port}/stream", *QUICK, "--max-frames", "7", "-q")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 8


def test_records_over_a_restart_of_the_server(start: Any, rtsp: Any, tmp_path: Path) -> None:
    """Case L2, and not one record lost or doubled: indices count what was received, and gaps are counted drops."""
    server, address = rtsp()
    file = tmp_path / "tokens.jsonl"
    process = start("live", address, *QUICK, "-o", str(file))
    wait_for(lambda: file.exists() and len(file.read_bytes().splitlines()) > 20)
    server.kill()
    lines = len(file.read_bytes().splitlines())
    time.sleep(0.5)
    server.start()
    wait_for(lambda: len(file.read_bytes().splitlines()) > lines + 30)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 143
    assert b": reconnecting: " in err
    got = records(file)
    assert all(before["index"] < after["index"] for before, after in pairwise(got))
    assert all(before["time"] < after["time"] for before, after in pairwise(got))
    again = err.count(b": streaming\n") - 1  # once, but for busy machines
    assert [record.get("keyframe_reason") for record in got].count("discontinuity") == again >= 1


def test_killed_and_started_again_nothing_is_lost(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    command = ("live", f"http://127.0.0.1:{mjpeg.port}/stream", *QUICK, "--rotate", "1h", "-o", str(file))
    first = start(*command)
    wait_for(lambda: file.exists() and len(file.read_bytes().splitlines()) > 10)
    first.kill()
    first.wait()
    written = file.read_bytes()
    start(*command)
    aside = tmp_path / "tokens-000001.jsonl"
    wait_for(lambda: aside.exists() and file.exists() and len(file.read_bytes().splitlines()) > 5)
    assert aside.read_bytes() == written[: written.rindex(b"\n") + 1]


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
def test_killed_only_the_last_part_is_lost(suffix: str, start: Any, mjpeg: Any, tmp_path: Path) -> None:
    """Parts as ``--rotate`` asks for them, whole while the run goes on and after kill -9."""
    file = tmp_path / f"tokens.{suffix}"
    address = f"http://127.0.0.1:{mjpeg.port}/stream?rate=50"
    process = start("live", address, *QUICK, "--rotate", "1s", "-o", str(file))
    parts = [tmp_path / f"tokens-00000{number}.{suffix}" for number in (1, 2, 3)]
    wait_for(lambda: parts[2].exists())
    process.kill()
    process.wait()
    if suffix == "parquet":
        found = [index for part in parts for index in pyarrow.parquet.read_table(part)["index"].to_pylist()]
    else:
        found = [int(index) for part in parts for _, arrays in read_shards(part) for index in arrays["frame_index"]]
    assert found[0] == 0
    assert len(found) >= 60
    assert all(before < after for before, after in pairwise(found))


def test_interrupted_the_summary_is_shown(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    process = start("live", f"http://127.0.0.1:{mjpeg.port}/stream", *QUICK, "-o", str(file))
    wait_for(lambda: file.exists() and len(file.read_bytes().splitlines()) > 3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    frames = len(records(file))
    assert f"interrupted after {frames} frames\n" in err.decode()
    assert re.search(rf"\n  {frames} frames in [\d.]+ s, [\d.]+ fps; \d+ tokens\n", err.decode())
    assert re.search(r"\n  received \d+, dropped \d+; connections 1\n", err.decode())


@pytest.mark.parametrize("case", ["stalled", "connecting"])
def test_interrupted_while_nothing_comes(case: str, start: Any, mjpeg: Any, silent: int, tmp_path: Path) -> None:
    """Case L5: exit within 2 s, code 130."""
    port, path = (mjpeg.port, "stream?stop=5") if case == "stalled" else (silent, "a")
    limits = ("--stall-timeout", "30", "--connect-timeout", "30")
    file = tmp_path / "tokens.jsonl"
    process = start("live", f"http://127.0.0.1:{port}/{path}", *limits, "-o", str(file))
    if case == "stalled":
        wait_for(lambda: file.exists() and len(file.read_bytes().splitlines()) == 6)
    else:
        time.sleep(2.0)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert time.monotonic() - begin < 6.0  # 2 s where the machine is not busy
    assert process.returncode == 130, err
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    "tail",
    [
        "@127.0.0.1:9/live",  # nobody listens
        "@127.0.0.1:{mjpeg}/refused",
        "@127.0.0.1:{mjpeg}/nothing-of-the-kind",
        "@127.0.0.1:{silent}/a",
        "@nowhere.invalid/a",
    ],
)
@pytest.mark.parametrize("scheme", ["rtsp", "http"])
def test_no_failure_shows_the_password(scheme: str, tail: str, foveate: Any, mjpeg: Any, silent: int) -> None:
    """Case L8."""
    address = f"{scheme}://user:geheim77{tail.format(mjpeg=mjpeg.port, silent=silent)}"
    frames = ("--max-frames", "2")  # "nothing of the kind" is a stream to this server
    code, out, err = foveate("live", address, *frames, "--connect-timeout", "1", "--debug")
    assert code == 1 or (scheme, "nothing" in tail) == ("http", True)
    assert "geheim77" not in out + err


def test_a_camera_that_is_not_there(foveate: Any) -> None:
    """Case L11."""
    code, out, err = foveate("live", "97")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("foveate: error: 97: there is no camera at /dev/video97")
    assert err.count("there is no camera") == 1


def test_the_password_is_in_no_title_log_or_header(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    address = f"http://user:geheim77@127.0.0.1:{mjpeg.port}/stream?key=schluessel"
    process = start("live", address, *QUICK, "--duration", "20s", "-o", str(file))
    wait_for(lambda: file.exists() and len(file.read_bytes().splitlines()) > 3)
    title = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    for secret in (b"geheim77", b"schluessel"):
        assert secret not in title + out + err + file.read_bytes()
    assert f"http://127.0.0.1:{mjpeg.port}/stream?key=***".encode() in title


def test_an_address_from_the_environment_or_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOOR", "rtsp://u:p@door/1\n")
    assert resolved("env:DOOR") == "rtsp://u:p@door/1"
    file = tmp_path / "yard"
    file.write_text("rtsp://u:p@yard/1\n")
    assert resolved(f"@{file}") == "rtsp://u:p@yard/1"
    for wrong in ("env:NOTHING_OF_THE_KIND", f"@{tmp_path}/none", f"@{tmp_path}"):
        with pytest.raises(SettingsError):
            resolved(wrong)


def test_a_file_may_hold_several_addresses(tmp_path: Path) -> None:
    file, empty = tmp_path / "cameras", tmp_path / "empty"
    file.write_text("rtsp://u:p@yard/1\n\n  rtsp://u:p@door/1\n")
    empty.write_text("\n")
    parsed = live_arguments(["0", f"@{file}", "-o", "{}.jsonl"], Console())
    assert parsed.addresses == ("0", "rtsp://u:p@yard/1", "rtsp://u:p@door/1")
    with pytest.raises(SettingsError, match="must hold one line"):
        resolved(f"@{file}")
    with pytest.raises(SettingsError, match="holds no address"):
        live_arguments([f"@{empty}"], Console())


def test_a_source_whose_output_cannot_be_written_has_failed(foveate: Any, mjpeg: Any, tmp_path: Path) -> None:
    """The other one goes on; one line says why, and the summary that it failed."""
    (tmp_path / "tokens-1.jsonl").symlink_to("/dev/full")
    addresses = [f"http://127.0.0.1:{mjpeg.port}/stream", f"http://127.0.0.1:{mjpeg.port}/stream?camera=1"]
    code, _, err = foveate("live", *addresses, *QUICK, "--duration", "2", "-o", str(tmp_path / "tokens-{}.jsonl"))
    assert code == 1
    assert [line for line in err.splitlines() if "the disk is full" in line] == [
        "foveate: warning: source 1 failed: cannot write /dev/full: the disk is full; free some space "
        "or name another place"
    ]
    assert f"{addresses[1]}: failed" in err
    assert f"{addresses[0]}: closed" in err
    assert len(records(tmp_path / "tokens-0.jsonl")) > 20


class Ended:
    """What ``live`` asks of a source that has ended, or still waits for its output."""

    number = 0
    alive = True
    stream = object()

    def check(self) -> None:
        """Of several sources, it says what went wrong."""

    def reports(self) -> list[Report]:
        return [Report(0, "camera", "failed", error="cannot write seen.rrd: the disk is full")]

    def stop(self) -> None: ...

    def join(self, seconds: float) -> None: ...


def test_an_output_that_fails_at_the_end_is_told_after_an_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    tell_failures(Ended(), Console())  # type: ignore[arg-type]
    assert capsys.readouterr().err == "foveate: warning: cannot write seen.rrd: the disk is full\n"


def test_an_output_that_is_not_completed_in_time_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = live_arguments(["rtsp://camera/1", "-o", str(tmp_path / "a.jsonl")], Console())
    group = SourceGroup(arguments, [0], Console(), lambda: None)
    group.workers = [Ended()]  # type: ignore[list-item]
    group.end(0.1)
    said = "foveate: warning: source 0 did not end within 0.1 s; its outputs may be incomplete\n"
    assert capsys.readouterr().err == said


def test_several_sources_at_once(foveate: Any, mjpeg: Any, tmp_path: Path) -> None:
    addresses = [f"http://127.0.0.1:{mjpeg.port}/{path}" for path in ("stream", "refused", "stream?rate=10")]
    pattern = str(tmp_path / "tokens-{}.jsonl")
    code, _, err = foveate("live", *addresses, *QUICK, "--duration", "2", "-o", pattern)
    assert code == 1
    assert err.count("user or password") == 1  # said once
    assert "source 1 failed" in err
    assert len(records(tmp_path / "tokens-0.jsonl")) > 20
    assert 10 <= len(records(tmp_path / "tokens-2.jsonl")) <= 22


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "SOURCE is missing"),
        (["rtsp://a", "rtsp://b", "-o", "tokens.jsonl"], "must hold {}"),
        (["rtsp://a", "--duration", "soon"], "--duration must be a time"),
        (["rtsp://a", "--rotate", "7"], "--rotate must be a size"),
        (["rtsp://a", "--rotate", "1h"], "need an output file"),
        (["rtsp://a", "--keep", "3", "-o", "-"], "need an output file"),
        (["rtsp://a", "--transport", "pigeon"], "--transport"),
        (["env:NOTHING_OF_THE_KIND"], "holds no address"),
    ],
)
def test_wrong_flags(flags: list[str], said: str, foveate: Any) -> None:
    code, out, err = foveate("live", *flags)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_quantities() -> None:
    assert [seconds_in(text, "") for text in ("90", "1.5s", "20m", "8h", "2d")] == [90, 1.5, 1200, 28_800, 172_800]
    assert size_or_seconds("100MB", "") == (100_000_000, None)
    assert size_or_seconds("1GiB", "") == (2**30, None)
    assert size_or_seconds("1h", "") == (None, 3600.0)


def test_a_file_is_sent_to_run_and_a_camera_to_live(foveate: Any, clip: str) -> None:
    assert "give files to foveate run" in foveate("live", clip)[2]
    assert "give it to foveate live" in foveate("run", "rtsp://user:pw123@camera")[2]
    assert "the source's address is empty" in foveate("live", "")[2]


def test_nobody_left_to_read_how_it_fares(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    """The server hangs up after each 5 pictures, which is told, to a pipe without a reader."""
    file, (reader, writer) = tmp_path / "tokens.jsonl", os.pipe()
    address = f"http://127.0.0.1:{mjpeg.port}/stream?end=5"
    process = start("live", address, *QUICK, "--max-frames", "12", "-o", str(file), stderr=writer)
    os.close(writer)
    assert b"streaming" in os.read(reader, 1000)
    os.close(reader)
    assert process.wait(timeout=30) == 0
    assert len(records(file)) == 12


def test_output_into_a_pipe_that_closes(mjpeg: Any) -> None:
    command = Path(sys.executable).with_name("foveate")
    line = f"'{command}' live http://127.0.0.1:{mjpeg.port}/stream -q | head -1 | wc -l; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == ["1", "0"]
    assert done.stderr == ""
