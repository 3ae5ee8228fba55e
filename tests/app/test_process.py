"""The command line as a real process on real video."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("foveate")
SHORT = ("--frames", "5")


def test_records_go_to_standard_output_and_nothing_else_does(foveate: Any, clip: str) -> None:
    code, out, err = foveate("run", clip, *SHORT)
    assert code == 0
    header, *records = [json.loads(line) for line in out.splitlines()]
    assert header["foveate"] == "0.1.0"
    assert [record["index"] for record in records] == [0, 1, 2, 3, 4]
    assert all(len(record["x"]) <= 273 for record in records)
    assert "5 frames" in err
    assert "\x1b" not in err + out


def test_a_file_and_the_summary(foveate: Any, clip: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    code, out, err = foveate("run", clip, *SHORT, "-b", "20", "-c", "stream", "-o", str(file))
    assert (code, out) == (0, "")
    header, *records = [json.loads(line) for line in file.read_text().splitlines()]
    assert header["config"]["budget"] == 20
    assert header["config"]["allocation"]["memory"] == "stream"
    assert len(records) == 5
    assert f"wrote {file}" in err
    for stage in ("decode", "upload", "pyramid", "cascade", "output"):
        assert stage in err


def test_quiet(foveate: Any, clip: str) -> None:
    code, out, err = foveate("run", clip, *SHORT, "--quiet")
    assert (code, len(out.splitlines()), err) == (0, 6, "")


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text"])
def test_what_is_no_video(kind: str, foveate: Any, tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_text("my secret diary\n" * 20 if kind == "text" else "")
    code, out, err = foveate("run", str(path))
    assert (code, out) == (1, "")
    assert err.startswith("foveate: error: ")
    assert str(path) in err
    assert err.count("\n") == 1
    assert "diary" not in err


@pytest.mark.parametrize(
    "flags",
    [
        ["--bugdet", "3"],
        ["--budget", "0"],
        ["--engine", "gpu"],
        ["--config", "nowhere.toml"],
        ["--query", ""],
        ["--out", "tokens.foo"],
    ],
)
def test_wrong_flags(flags: list[str], foveate: Any, clip: str) -> None:
    code, out, err = foveate("run", clip, *flags)
    assert (code, out) == (2, "")
    assert err.startswith("foveate: error: ")
    assert err.count("\n") == 1


def test_an_output_that_cannot_be(foveate: Any, clip: str, tmp_path: Path) -> None:
    code, out, err = foveate("run", clip, "--out", str(tmp_path / "no" / "tokens.jsonl"))
    assert (code, out) == (1, "")
    assert err.startswith("foveate: error: cannot write ")
    assert err.count("\n") == 1


def test_a_cut_file_gives_what_it_has_and_3(foveate: Any, long_clip: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.mkv", tmp_path / "cut.mkv"
    subprocess.run(["ffmpeg", "-v", "error", "-i", str(long_clip), "-c", "copy", "-t", "5", str(whole)], check=True)
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 6 // 10])
    code, out, err = foveate("run", str(cut), "--quiet")
    assert code == 3
    assert len(out.splitlines()) > 10
    assert err.startswith("foveate: warning: the source is damaged: ")
    assert err.count("\n") == 1


def test_a_secret_in_an_address(foveate: Any) -> None:
    code, out, err = foveate("run", "rtsp://user:secret@127.0.0.1:9/live", "--debug")
    assert code == 1
    assert "secret" not in out + err


@pytest.mark.parametrize("both", ["", "2>&1"])
def test_a_reader_that_goes_away(both: str, long_clip: Path) -> None:
    command = f"'{COMMAND}' run '{long_clip}' {both} | head -1 | wc -l; echo ${{PIPESTATUS[0]}}"
    begin = time.monotonic()
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30, check=True)
    assert time.monotonic() - begin < 10.0  # 2 s and the interpreter's start, where the machine is not busy
    assert done.stdout.split() == ["1", "0"]
    assert done.stderr == ""


@pytest.mark.parametrize("gone", ["2>/dev/full", "2> >(true)"])
def test_nobody_left_to_read_what_is_told(gone: str, clip: str, tmp_path: Path) -> None:
    command = f"'{COMMAND}' run '{clip}' --frames 20 -o '{tmp_path}/a.jsonl' {gone}; echo $?"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=ROOT, check=True)
    assert done.stdout.split() == ["0"]
    assert len((tmp_path / "a.jsonl").read_bytes().splitlines()) == 21


@pytest.mark.parametrize("command", ["run --help", "doctor", "doctor --json"])
def test_help_into_a_closed_pipe(command: str) -> None:
    command = f"'{COMMAND}' {command} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == ["0"]
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["--help", "run --help", "doctor", "doctor --json"])
def test_help_onto_a_full_disk(command: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"'{COMMAND}' {command} >/dev/full"], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("foveate: error: cannot write standard output: the disk is full")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal(number: signal.Signals, code: int, start: Any, long_clip: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    process = start("run", str(long_clip), "--out", str(file))
    while not file.exists() or file.stat().st_size < 20_000:
        time.sleep(0.02)
    begin = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert time.monotonic() - begin < 6.0  # 2 s where the machine is not busy
    assert process.returncode == code
    lines = file.read_text().splitlines()
    for line in lines:
        json.loads(line)
    words = err.decode().split()
    assert words[:2] == ["interrupted", "after"]
    assert words[3:] == ["frames"]
    # The output stage may be ahead of the caller by the one in its hand and the one in the channel.
    assert 0 <= len(lines) - 1 - int(words[2]) <= 2


def test_a_signal_while_the_source_keeps_silent(start: Any, tmp_path: Path) -> None:
    pipe = tmp_path / "silent.mp4"
    os.mkfifo(pipe)
    process = start("run", str(pipe))
    writer = None
    while writer is None and process.poll() is None:  # a pipe can be written to only once it is being read
        with contextlib.suppress(OSError):
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.05)
    if process.poll() is not None:  # a source may refuse what is no file
        assert process.returncode == 1
        return
    assert writer is not None
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert time.monotonic() - begin < 6.0  # 2 s where the machine is not busy
    os.close(writer)
    assert (process.returncode, err) == (130, b"interrupted after 0 frames\n")


def test_killed_hard_the_file_is_whole_up_to_its_last_line(start: Any, long_clip: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    process = start("run", str(long_clip), "--out", str(file))
    while not file.exists() or file.stat().st_size < 200_000:
        time.sleep(0.02)
    process.kill()
    process.wait()
    *whole, _ = file.read_bytes().split(b"\n")
    assert len(whole) > 10
    for line in whole:
        json.loads(line)


def test_a_bar_on_a_terminal_only(long_clip: Path, tmp_path: Path) -> None:
    command = f"{COMMAND} run {long_clip} --frames 60 --out {tmp_path / 'a.jsonl'}"
    done = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, timeout=30, check=True)
    screen = done.stdout.decode()
    assert "/60" in screen
    assert "fps" in screen
    assert "\x1b[?25h" in screen  # the cursor is shown again


def test_the_start_is_light(foveate: Any) -> None:
    code, out, _ = foveate("--version")
    assert (code, out) == (0, "foveate 0.1.0\n")
    names = "import sys, foveate.app.run, foveate.pipeline.stream; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", names], text=True).split()
    assert not {"matplotlib", "torch", "pyarrow", "scipy"} & set(loaded)


@pytest.mark.parametrize(("named", "lines"), [([], 0), (["--out", "-"], 3)])
def test_a_terminal_is_not_filled_with_records_unless_they_are_asked_for(
    named: list[str], lines: int, samples: Path
) -> None:
    reading, terminal = pty.openpty()
    clip = str(samples / "tree.mp4")
    command = [sys.executable, "-m", "foveate", "run", clip, "--frames", "2", "--budget", "3", *named]
    ended = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, check=True, timeout=120, text=True)
    os.write(terminal, b"end\n")
    shown = b""
    while not shown.endswith(b"end\r\n"):
        shown += os.read(reading, 65536)
    assert shown.count(b"\n") == lines + 1
    assert ("no output is named" in ended.stderr) == (lines == 0)
    for each in (reading, terminal):
        os.close(each)
