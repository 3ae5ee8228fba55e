"""The parts of the GPU benchmarks that need no GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from foveate.bench.gpu.frame import least_bytes
from foveate.bench.gpu.scene import HEIGHT, WIDTH, pictures
from foveate.bench.texture import block_means


def test_the_scenes_pictures_differ_in_a_tenth_of_the_tiles(samples: Path) -> None:
    first, second = pictures(samples / "bunny.mp4")
    assert first.shape == (HEIGHT * 3 // 2, WIDTH)
    blocks = block_means(np.abs(first[:HEIGHT].astype(np.int16) - second[:HEIGHT]), 8) > 3.0
    rows, columns = -(-HEIGHT // 32), WIDTH // 32
    padded = np.zeros((rows * 4, columns * 4), np.bool_)
    padded[: blocks.shape[0], : blocks.shape[1]] = blocks
    share = padded.reshape(rows, 4, columns, 4).any(axis=(1, 3)).mean()
    assert share == pytest.approx(0.1, abs=0.01)
    assert (first[HEIGHT:] == second[HEIGHT:]).all()


def test_least_bytes_grow_with_what_is_written() -> None:
    assert least_bytes("Write", 1.0, 2) == pytest.approx(10 * least_bytes("Write", 0.1, 2))
    assert least_bytes("Change", 0.1, 2) == 2 * 1.5 * WIDTH * HEIGHT  # both pictures, 4:2:0
    assert least_bytes("Layers", 0.1, 0) > least_bytes("Layers", 0.1, 2)
