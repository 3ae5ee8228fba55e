"""``kill -9`` of the command, or of one of its processes, at any moment: the next run ends with the same bytes.

``FOVEATE_KILLS`` is how many times it is done.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from foveate.app.main import main
from tests.pipeline.corpus_cases import contents, make_clips

ROUNDS = int(os.environ.get("FOVEATE_KILLS", "3"))
GONE_WITHIN = 5.0  # seconds
LATEST = 2.5  # seconds after the start; with two processes there is work for about as long


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


def processes_of(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    with contextlib.suppress(OSError):
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [*children, *(each for child in children for each in processes_of(child))]
    return []


def runs(pid: int) -> bool:
    """Whether a process is there, and no zombie that its new parent has not looked at yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_at_some_moment(number: int, clips: Path, whole: dict[str, str], tmp_path: Path, start: Any) -> None:
    chance = random.Random(number)
    command = ["corpus", str(clips / "good"), "--out", str(tmp_path / "tokens"), "--workers", "2"]
    process = start(*command)
    time.sleep(chance.uniform(0.0, LATEST))
    others = processes_of(process.pid)
    if number % 2 and others:
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            os.kill(chance.choice(others), signal.SIGKILL)
    else:
        process.kill()
        deadline = time.monotonic() + GONE_WITHIN
        while any(map(runs, others)):
            assert time.monotonic() < deadline, "a process outlives the command"
            time.sleep(0.01)
    process.communicate(timeout=60)
    there = contents(tmp_path / "tokens")
    for name in there:  # whatever has its name is whole, and what counts as done is there
        if name.startswith(("frames/", "_done/")):
            assert there[name] == whole[name]
        if name.startswith("_done/"):
            assert name.replace("_done/", "frames/").replace(".json", ".parquet") in there
    assert main([*command, "--retry", "-q"]) == 0
    assert contents(tmp_path / "tokens") == whole
