"""The plain selection in torch is the same selection."""

import json
from pathlib import Path

import pytest

from foveate.bench.case import RedCheckError
from foveate.bench.cases.plain import agreement, plain, scenes
from foveate.bench.entry import exit_code
from foveate.bench.speed.cost import select

pytest.importorskip("torch")


def test_the_record(samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "plain.json"
    assert exit_code(plain, [str(samples / "bunny.mp4"), "--repeats", "1", "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert [case["name"] for case in record["cases"]] == ["plain", "still", "tenth", "keyframe"]
    assert record["equal_tokens"] >= 0.9
    torch, still = record["cases"][:2]
    assert record["times_faster"]["still"] == pytest.approx(torch["cpu_ms"] / still["cpu_ms"])


def test_other_tokens_are_red(samples: Path) -> None:
    from foveate.bench.gpu.scene import pictures

    frames, settings = scenes(pictures(samples / "bunny.mp4"))["still"]
    selections, _ = select(frames[:2], settings)
    with pytest.raises(RedCheckError, match=r"torch chose 0\.0% of the engine's tokens"):
        agreement(selections[-1], set())
