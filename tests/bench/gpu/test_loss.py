"""The bench of lost datagrams, on the CPU."""

import json
from pathlib import Path

from foveate.bench.entry import exit_code
from foveate.bench.gpu.loss import gpu_loss


def test_whole_pictures_come_again(samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    flags = ["--seconds", "1", "--percent", "20", "--size", "320x240", "--engine", "cpu", "--out", str(out)]
    assert exit_code(gpu_loss, [str(samples / "tree.mp4"), *flags]) == 0
    record = json.loads(out.read_text())
    assert (record["connections"], record["looks"], record["unrecovered"]) == (1, 1, 0)
    assert record["sent"] > record["lost"] > 0
    assert record["frames"] > 90


def test_what_is_not_possible_is_one_line(samples: Path, tmp_path: Path) -> None:
    assert exit_code(gpu_loss, [str(samples / "tree.mp4"), "--percent", "101"]) == 2
    assert exit_code(gpu_loss, [str(tmp_path / "missing.mp4"), "--engine", "cpu"]) == 1
