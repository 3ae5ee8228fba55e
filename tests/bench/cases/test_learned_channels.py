"""What is learned predicts what it was taught, least squares finds the weights, and clips are held out."""

from pathlib import Path

import numpy as np
import pytest

from foveate.bench.case import Clip

pytest.importorskip("torch")

from foveate.bench.cases.learned_channels import (
    HAND_MADE,
    METHODS,
    Shot,
    applied,
    change,
    fitted,
    held_out,
    network,
    predicted,
    read_shot,
    trained,
    weights_of,
)


def made_shot(clip: Clip, seed: int) -> Shot:
    """Ten noisy pictures; the target is the mean of each cell's difference, which is also the first channel."""
    generator = np.random.default_rng(seed)
    cells = generator.random((10, 6, 8)).astype(np.float32)
    pictures = np.stack([generator.normal(0, 0.2, (10, 24, 32)), cells.repeat(4, 1).repeat(4, 2)], axis=1)
    channels = generator.random((10, 6, 8, len(HAND_MADE))).astype(np.float32)
    channels[..., 0] = cells
    return Shot(clip, pictures.astype(np.float32), channels, -cells, 2 * cells)


def test_the_size_of_the_network() -> None:
    """5x5x2 weights for each of 6 features, 3x3x6 for each of 4, 4 for the value, and a bias for each."""
    assert weights_of(network()) == (50 + 1) * 6 + (54 + 1) * 4 + 4 + 1 == 531


def test_least_squares() -> None:
    values = np.random.default_rng(0).random((50, 3)).astype(np.float32)
    target = values @ np.array([2, -1, 0.5], np.float32) + 4
    np.testing.assert_allclose(fitted(values, target), [2, -1, 0.5, 4], atol=1e-5)
    np.testing.assert_allclose(predicted(values, np.array([1.0, 1, 1, 2])), values.sum(axis=1) + 2, rtol=1e-6)


def test_change_is_the_logarithm_of_the_mean_difference() -> None:
    before, now = np.zeros((20, 16), np.uint8), np.zeros((20, 16), np.uint8)
    now[:8] = 6  # half of the first cell; the second one has four rows, and they are repeated
    np.testing.assert_allclose(change(before, now), [[np.log(4)], [0]], rtol=1e-6)


def test_it_learns(samples: Path) -> None:
    clip = Clip("bunny", samples / "bunny.mp4")
    shot, other = made_shot(clip, 1), made_shot(clip, 2)
    before = np.mean((applied(network(), other.pictures) - other.target) ** 2)
    after = np.mean((applied(trained(network(), [shot], 100), other.pictures) - other.target) ** 2)
    assert after < 0.3 * before
    cases = {case["method"]: case for case in held_out(other, [shot])}
    assert set(cases) == set(METHODS)
    assert cases["hand-made"]["spearman"] == pytest.approx(1, abs=1e-3)
    assert cases["learned"]["spearman"] > 0.7
    assert cases["last change"]["spearman"] == pytest.approx(-1, abs=1e-6)
    assert cases["last change"]["top_tenth"] == 0


def test_a_shot_has_the_change_before_and_after_each_frame(samples: Path) -> None:
    shot = read_shot(Clip("tree", samples / "tree.mp4"), 6)
    assert shot.pictures.shape == (4, 2, 60, 80)
    assert shot.channels.shape == (4, 15, 20, len(HAND_MADE))
    np.testing.assert_array_equal(shot.last[1:], shot.target[:-1])
