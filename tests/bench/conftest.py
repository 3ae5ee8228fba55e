"""Records and clips that need no measuring."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.bench.clips.encoding import FAST, encode, grey_frame
from foveate.bench.clips.footage import Footage, Picture


@pytest.fixture(scope="session")
def tiny_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve frames of 96x64, on which a square moves."""
    path = tmp_path_factory.mktemp("tiny") / "tiny.mp4"
    frames = []
    for index in range(12):
        luma = np.full((64, 96), 60, np.uint8)
        luma[16:40, 4 * index : 4 * index + 24] = 200
        frames.append(grey_frame(luma))
    encode(path, frames, Fraction(25), FAST)
    return path


@pytest.fixture(scope="session")
def still_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seventy times the same frame of 96x64."""
    path = tmp_path_factory.mktemp("still") / "still.mp4"
    luma = np.add.outer(np.arange(64), np.arange(96)).astype(np.uint8)
    encode(path, [grey_frame(luma) for _ in range(70)], Fraction(25), FAST)
    return path


def _grey(luma: np.ndarray) -> Picture:
    chroma = np.full((-(-luma.shape[0] // 2), -(-luma.shape[1] // 2)), 128, np.uint8)
    return Picture(luma, chroma, chroma, luma[..., None].repeat(3, axis=2))


@pytest.fixture
def footage_of() -> Callable[..., Footage]:
    """Makes colourless Footage, of one luma uint8[H, W] per frame."""
    return lambda *lumas: Footage(Path("none.mp4"), [_grey(luma) for luma in lumas])


@pytest.fixture
def footage_of_cells(footage_of: Callable[..., Footage]) -> Callable[..., Footage]:
    """Makes Footage of which every cell is plain: from one list of grey values [rows][columns] per frame."""
    return lambda *frames: footage_of(*(np.array(c, np.uint8).repeat(16, axis=0).repeat(16, axis=1) for c in frames))


@pytest.fixture
def record() -> dict[str, Any]:
    """What ``foveate bench`` writes, made up."""
    stages = [
        {"name": name, "busy_ms": ms, "p50_ms": ms, "p90_ms": ms, "p99_ms": ms, "busy": 0.1, "cpu": 0.1}
        for name, ms in (("decode", 1.0), ("upload", 2.0), ("pyramid", 3.0), ("cascade", 4.0), ("output", 0.5))
    ]
    case = {"decode_fps": 100.0, "pipeline_fps": 50.0, "ratio": 0.5, "stages": stages}
    return {
        "commit": "0123456789abcdef",
        "dirty": True,
        "machine": {"processor": "a processor", "cores": 2},
        "cases": [{"name": "one", **case}, {"name": "two, stream", **case}],
        "red": [],
    }
