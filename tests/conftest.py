"""Fixtures for all rooms: the test inputs, made once per test session, and the real clips."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parent.parent
_SCRIPT = Path(__file__).resolve().parent / "cases" / "make_cases.sh"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--gpu-required", action="store_true", help="fail where a test finds no GPU, instead of skipping")


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
