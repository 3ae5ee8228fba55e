"""The simulation of many cameras, with two of them on the CPU."""

import json
from pathlib import Path

from foveate.bench.entry import exit_code
from foveate.bench.gpu.live import gpu_live


def test_two_cameras_in_two_processes(samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    flags = ["--streams", "2", "--processes", "2", "--seconds", "2", "--size", "160x120", "--engine", "cpu"]
    assert exit_code(gpu_live, [str(samples / "tree.mp4"), *flags, "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert (record["streams"], record["processes"], record["seconds"]) == (2, 2, 2)
    assert 30 <= record["fps"] <= 61  # of 60; this machine may be busy
    assert record["frames"] + record["dropped"] <= record["received"] + 4 * 2
    assert 0 < record["latency_p50_ms"] <= record["latency_p99_ms"]
    assert record["opening"]["frames"] >= 2 * 30
    assert 0 < record["opening"]["first_p50_s"] <= record["opening"]["first_p99_s"]
    assert 0 < record["opening"]["age_p50_ms"] <= record["opening"]["age_max_ms"]
    steps = record["opening"]["steps"]
    assert list(steps) == ["camera begun", "connected", "first picture", "first tokens"]  # the others are a card's
    moments = [step["p50_s"] for step in steps.values()]
    assert moments == sorted(moments)
    assert moments[0] > 0
    assert moments[-1] < record["opening_s"]
    assert record["age_p99_ms"] > record["age_p50_ms"] > 0


def test_what_is_not_possible_is_one_line(samples: Path, tmp_path: Path, capsys: object) -> None:
    assert exit_code(gpu_live, [str(samples / "tree.mp4"), "--streams", "0"]) == 2
    assert exit_code(gpu_live, [str(tmp_path / "missing.mp4"), "--engine", "cpu"]) == 1
