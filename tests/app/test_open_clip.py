"""The whole way with one flag each: a model's weights from a file, components from ``fit-pca``, a query, tokens.

Needs torch and open_clip, which CI does not install: ``pip install -e '.[clip]'``, then run this file. The model is the
tiny one of tests/models/planted.py, whose weights were set by hand.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

import foveate.app.main as app

SQUARE = (slice(96, 160), slice(256, 320))  # rows and columns of pixels: cells 6 to 9 and 16 to 19


@pytest.fixture
def clip(tmp_path: Path) -> str:
    """Six pictures, 480 x 256: a red square on noise of all colours but red, which moves by a cell in each."""
    rng = np.random.default_rng(2)
    folder = tmp_path / "clip"
    folder.mkdir()
    noise = rng.integers(60, 200, (16, 30, 3), np.uint8)
    noise[..., 2] = np.minimum(noise[..., 2], noise[..., :2].min(axis=2))  # BGR: red is never the most
    for index in range(6):
        picture = np.roll(noise, index, axis=1).repeat(16, axis=0).repeat(16, axis=1)
        picture[SQUARE] = (10, 10, 240)
        cv2.imwrite(str(folder / f"f_{index}.png"), picture)
    return str(folder / "f_%d.png")


@pytest.fixture
def model(planted: SimpleNamespace) -> list[str]:
    return ["--model", planted.folder, "--weights", planted.weights, "--device", "cpu"]


def as_clip(model: list[str]) -> list[str]:
    return [part.replace("--", "--clip.") if part.startswith("--") else part for part in model]


def test_from_weights_to_tokens(clip: str, model: list[str], tmp_path: Path) -> None:
    pca, out = str(tmp_path / "pca.npz"), tmp_path / "out.jsonl"
    assert app.main(["fit-pca", clip, *model, "--every", "1", "-o", pca]) == 0
    flags = ["--encoder", "open_clip", *as_clip(model), "--clip.pca", pca, "--clip.resolution", "480"]
    assert app.main(["run", clip, "-q", *flags, "--query", "red", "-b", "64", "-o", str(out)]) == 0
    header, *records = map(json.loads, out.read_text().splitlines())
    assert header["config"]["encoder"] == "open_clip"
    assert len(records) == 6
    for record in records:
        assert 0 <= record["embedding_age"] <= 4
        assert len(record["x"]) <= 64
        fine = {
            (y // 16, x // 16) for x, y, lod in zip(record["x"], record["y"], record["lod"], strict=True) if lod == 0
        }
        assert {(row, column) for row in range(6, 10) for column in range(16, 20)} <= fine
        inside = [
            part
            for x, y, part in zip(record["x"], record["y"], record["participation"], strict=True)
            if (y // 16, x // 16) in fine and 6 <= y // 16 < 10 and 16 <= x // 16 < 20
        ]
        assert min(inside) > 0.9


def test_components_of_another_model_are_refused(
    clip: str, model: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pca = tmp_path / "pca.npz"
    about = np.frombuffer(json.dumps({"format": 1, "encoder": "another", "check": {}}).encode(), np.uint8)
    np.savez(pca, mean=np.zeros(24), basis=np.eye(16, 24), explained=np.ones(16), about=about)
    flags = ["--encoder", "open_clip", *as_clip(model), "--clip.pca", str(pca)]
    assert app.main(["run", clip, *flags, "--query", "red"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "fitted for the encoder another" in line
