"""``kill -9`` of the command, or of one of its processes, at any moment: the next run ends with the same bytes.

``FOVEATE_KILLS`` is how many times it is done.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from foveate.app.main import main
from tests.pipeline.corpus_cases import contents, make_clips, runs

ROUNDS = int(os.environ.get("FOVEATE_KILLS", "3"))
GONE_WITHIN = 5.0  # seconds
BEGINS_WITHIN = 120.0  # seconds, a cluster on any machine
LATEST = 2.5  # seconds after the first process is there; the whole command takes about as long


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    make_clips(folder)
    return folder


@pytest.fixture(scope="module")
def whole(clips: Path) -> dict[str, str]:
    """What one process makes."""
    assert main(["corpus", str(clips / "good"), "--out", str(clips / "alone"), "--workers", "0", "-q"]) == 0
    return contents(clips / "alone")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a Ray cluster on this machine."""
    if find_spec("ray") is None:
        pytest.skip("needs Ray: pip install -e '.[ray]'")
    with contextlib.closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    ray = [sys.executable, "-m", "ray.scripts.scripts"]
    begin = [*ray, "start", "--head", "--block", "--num-cpus=2", "--include-dashboard=false", f"--port={port}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        head = subprocess.Popen(begin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + BEGINS_WITHIN
        check = [*ray, "health-check", "--address", f"127.0.0.1:{port}"]
        try:
            while subprocess.run(check, capture_output=True, check=False).returncode:
                assert time.monotonic() < deadline, "the cluster does not begin"
            yield f"127.0.0.1:{port}"
        finally:
            head.terminate()
            head.wait()


def processes_of(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    with contextlib.suppress(OSError):
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [*children, *(each for child in children for each in processes_of(child))]
    return []


def actors() -> list[int]:
    """The workers of the command on the cluster."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (place / "cmdline").read_bytes().startswith(b"ray::Actor"):
                found.append(int(place.name))
    return found


def check_whole(there: dict[str, str], whole: dict[str, str]) -> None:
    """Whatever has its name is whole, and what counts as done is there."""
    for name in there:
        if name.startswith(("frames/", "_done/")):
            assert there[name] == whole[name]
        if name.startswith("_done/"):
            assert name.replace("_done/", "frames/").replace(".json", ".parquet") in there


def killed(process: subprocess.Popen[bytes], others: Sequence[int], one: int | None) -> None:
    """Kill ``one`` of the others, or where that is None the command, behind which no other may stay."""
    if one is not None:
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(one, signal.SIGKILL)
    else:
        process.kill()
        deadline = time.monotonic() + GONE_WITHIN
        while any(map(runs, others)):
            assert time.monotonic() < deadline, "a process outlives the command"
            time.sleep(0.01)
    process.communicate(timeout=120)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_at_some_moment(number: int, clips: Path, whole: dict[str, str], tmp_path: Path, start: Any) -> None:
    chance = random.Random(number)
    command = ["corpus", str(clips / "good"), "--out", str(tmp_path / "tokens"), "--workers", "2"]
    process = start(*command)
    while not processes_of(process.pid) and process.poll() is None:
        time.sleep(0.001)
    time.sleep(chance.uniform(0.0, LATEST))
    others = processes_of(process.pid)
    killed(process, others, chance.choice(others) if number % 2 and others else None)
    check_whole(contents(tmp_path / "tokens"), whole)
    assert main([*command, "--retry", "-q"]) == 0
    assert contents(tmp_path / "tokens") == whole


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_on_a_cluster(
    number: int, clips: Path, whole: dict[str, str], tmp_path: Path, start: Any, cluster: str
) -> None:
    chance = random.Random(number)
    command = ["corpus", str(clips / "good"), "--out", str(tmp_path / "tokens"), "--workers", "2", "--ray", cluster]
    process = start(*command)
    while not actors() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(chance.uniform(0.0, LATEST))
    others = actors()
    killed(process, others, chance.choice(others) if number % 2 and others else None)
    check_whole(contents(tmp_path / "tokens"), whole)
    again = start(*command, "--retry", "-q")
    assert again.communicate(timeout=120) == (b"", b"")
    assert contents(tmp_path / "tokens") == whole
