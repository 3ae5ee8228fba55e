"""Addresses of every kind, given to ``foveate run`` and ``foveate live``: read, or refused in one line."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

COUNT = 50


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a film of 50 pictures, and the same as HLS."""
    folder = tmp_path_factory.mktemp("films")
    made = ["-f", "lavfi", "-i", f"testsrc2=size=320x240:rate=25:duration={COUNT / 25}", "-pix_fmt", "yuv420p"]
    encode = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "12", "-g", "25", "-movflags", "+faststart"]
    subprocess.run(["ffmpeg", "-v", "error", *made, *encode, str(folder / "a film.mp4")], check=True)
    form = ["-c", "copy", "-hls_time", "1", "-hls_list_size", "0", str(folder / "list.m3u8")]
    subprocess.run(["ffmpeg", "-v", "error", "-i", str(folder / "a film.mp4"), *form], check=True)
    return folder


@pytest.fixture
def host(server: Any, films: Path) -> str:
    return f"127.0.0.1:{server('files.py', str(films)).port}"


def indices(path: Path) -> list[int]:
    return [json.loads(line)["index"] for line in path.read_bytes().splitlines()[1:]]


def test_run_reads_every_picture_of_a_film_by_http(foveate: Any, host: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    address = f"http://user:geheim77@{host}/secret/a film.mp4?token=schluessel"
    code, out, err = foveate("run", address, "--budget", "40", "-o", str(file))
    assert (code, out) == (0, ""), err
    assert indices(file) == list(range(COUNT))
    assert not [word for word in ("geheim77", "schluessel") if word in err + file.read_text()]


def test_a_part_of_it(foveate: Any, host: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    flags = ("--start", "1", "--end", "1.5", "--budget", "40", "-q", "-o", str(file))
    assert foveate("run", f"http://{host}/ranges/a%20film.mp4", *flags)[0] == 0
    times = [json.loads(line)["time"] for line in file.read_bytes().splitlines()[1:]]
    assert 12 <= len(times) <= 13


def test_the_password_leaves_the_process_title(start: Any, host: str, tmp_path: Path) -> None:
    address = f"http://user:geheim77@{host}/silent/a film.mp4?at=1000&key=schluessel"
    process = start("run", address, "-o", str(tmp_path / "tokens.jsonl"))
    title, limit = Path(f"/proc/{process.pid}/cmdline"), time.monotonic() + 20
    while b"key=***" not in title.read_bytes():
        assert time.monotonic() < limit
        time.sleep(0.05)
    assert b"geheim77" not in title.read_bytes()
    assert b"schluessel" not in title.read_bytes()
    process.send_signal(2)
    begin = time.monotonic()
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - begin < 6.0


@pytest.mark.parametrize("flags", [(), ("--every", "2")])
def test_interrupted_while_a_server_keeps_silent(flags: tuple[str, ...], start: Any, host: str, tmp_path: Path) -> None:
    """The server may be silent for 10 s, and is then asked again."""
    file = tmp_path / "tokens.jsonl"
    process = start("run", f"http://{host}/silent/a%20film.mp4?at=200000", *flags, "--budget", "40", "-o", str(file))
    limit = time.monotonic() + 20
    while not file.exists() or len(file.read_bytes().splitlines()) < 10:
        assert time.monotonic() < limit
        time.sleep(0.05)
    time.sleep(1.0)
    begin = time.monotonic()
    process.send_signal(2)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert time.monotonic() - begin < 5.0


@pytest.mark.parametrize(("at", "code"), [(1000, 1), (60_000, 3)])
def test_a_cut_connection_is_no_success(at: int, code: int, foveate: Any, host: str, tmp_path: Path) -> None:
    address = f"http://{host}/cut/a%20film.mp4?at={at}"
    got, _, err = foveate("run", address, "--budget", "40", "-q", "-o", str(tmp_path / "tokens.jsonl"))
    assert got == code, err
    assert f"the connection was cut at byte {at} of" in err
    assert err.count("\n") == 1


def test_live_drops_no_picture_of_a_film_but_names_run(foveate: Any, host: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    code, out, err = foveate("live", f"http://{host}/ranges/a%20film.mp4", "-q", "-o", str(file))
    assert (code, out) == (1, "")
    assert "a file, not a live source; give it to foveate run" in err
    assert err.count("\n") == 1
    assert not file.exists()


def test_live_reads_a_playlist_with_an_end_to_its_end_without_loss(foveate: Any, host: str, tmp_path: Path) -> None:
    """They come far faster than they can be worked on."""
    file = tmp_path / "tokens.jsonl"
    code, _, err = foveate("live", f"http://{host}/ranges/list.m3u8", "--budget", "200", "-o", str(file))
    assert code == 0, err
    assert indices(file) == list(range(COUNT))
    assert "dropped 0" in err


def test_file_addresses_are_paths(foveate: Any, films: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    for address in (f"file://{films}/a%20film.mp4", f"file://localhost{films}/a film.mp4"):
        assert foveate("run", address, "--max-frames", "3", "-q", "-o", str(file))[0] == 0
        assert indices(file) == [0, 1, 2]
    overlay = films / "copy.mp4"
    overlay.write_bytes((films / "a film.mp4").read_bytes())
    code, _, err = foveate("run", f"file://{overlay}", "--overlay", str(overlay))
    assert code == 1
    assert "it is the source itself" in err
    assert "give files to foveate run" in foveate("live", f"file://{films}/a%20film.mp4")[2]
    assert "write file:///PATH" in foveate("run", "file://a%20film.mp4")[2]


@pytest.mark.parametrize("command", ["run", "live"])
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://user:geheim77@bucket/a.mp4", "give a presigned https:// address"),
        ("gs://bucket/a.mp4", "give a presigned https:// address"),
        ("sftp://user:geheim77@host/a.mp4", "download the file first (sftp)"),
        ("gopher://host/a", "give one that begins with http://"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_command_that_was_asked(
    command: str, address: str, said: str, foveate: Any
) -> None:
    code, out, err = foveate(command, address)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said in err
    assert "geheim77" not in err
    assert "foveate live" not in err
    assert "foveate run" not in err


@pytest.mark.parametrize("scheme", ["rtsp", "rtsps", "rtmp", "rtmps", "udp", "srt"])
def test_live_addresses_are_sent_to_live(scheme: str, foveate: Any) -> None:
    code, _, err = foveate("run", f"{scheme}://user:geheim77@127.0.0.1:9/a")
    assert code == 1
    assert err == f"foveate: error: {scheme}://127.0.0.1:9/a is a live source; give it to foveate live\n"


def test_files_by_ftp_are_sent_to_run(foveate: Any) -> None:
    code, _, err = foveate("live", "ftp://user:geheim77@127.0.0.1:9/a.mp4")
    assert (code, err) == (
        1,
        "foveate: error: ftp://127.0.0.1:9/a.mp4 is a file on a server; give files to foveate run\n",
    )
