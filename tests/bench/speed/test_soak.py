"""The soak, for a few seconds."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from foveate.bench.case import RedCheckError
from foveate.bench.entry import exit_code
from foveate.bench.speed.soak import _checked, soak

SERVER = Path(__file__).parents[2] / "servers" / "rtsp.py"


def test_restarts_are_seen_and_counted(rtsp: Any, tmp_path: Path) -> None:
    server, address = rtsp()
    server.kill()  # the soak starts its own, at the same port
    out, folder = tmp_path / "record.json", server._command[2]
    command = shlex.join([sys.executable, str(SERVER), folder, str(server.port)])
    flags = ["--server", command, "--seconds", "8", "--restarts", "5", "--out", str(out)]
    assert exit_code(soak, [address, *flags]) == 0
    record = json.loads(out.read_text())
    assert [sample["restarts"] for sample in record["samples"]] == [1, 2, 3, 4, 5]
    assert record["discontinuities"] == 5
    assert record["records"] > 20
    assert all(10 < sample["host_mib"] < 1000 for sample in record["samples"])
    assert all(1 < sample["threads"] < 100 and 3 < sample["descriptors"] < 100 for sample in record["samples"])


def test_a_record_that_comes_twice_is_red(tmp_path: Path) -> None:
    file = tmp_path / "tokens.jsonl"
    file.write_text('{}\n{"index": 0, "time": 0.0}\n{"index": 1, "time": 0.1}\n{"index": 1, "time": 0.2}\n')
    with pytest.raises(RedCheckError, match="does not grow"):
        _checked(file)


def test_what_is_not_possible_is_one_line() -> None:
    assert exit_code(soak, ["rtsp://127.0.0.1/a", "--server", "true", "--restarts", "0"]) == 2
