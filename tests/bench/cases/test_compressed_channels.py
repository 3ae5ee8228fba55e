"""Bytes and blocks give back what they were given, to half a step; the agreement counts by hand."""

from pathlib import Path

import numpy as np
import pytest

from foveate.bench.case import Clip
from foveate.bench.cases.compressed_channels import (
    FORMATS,
    clip_formats,
    from_blocks,
    from_bytes,
    to_blocks,
    to_bytes,
    whole,
)
from foveate.bench.cases.ranking import agreement


def test_bytes() -> None:
    values = np.array([[0, 0.5, 1, 2, -1]], np.float32)
    np.testing.assert_array_equal(to_bytes(values), [[0, 128, 255, 255, 0]])
    random = np.random.default_rng(0).random((8, 8)).astype(np.float32)
    np.testing.assert_allclose(from_bytes(to_bytes(random)), random, atol=0.5 / 255 + 1e-6)


def test_blocks_by_hand() -> None:
    """From 10 to 80 of 255 in steps of 10; 44 lies nearest to 40, the third step; the second block is plain."""
    first = np.array([10, 80, 20, 30, 40, 50, 60, 70, 44, 10, 10, 10, 10, 10, 10, 10]).reshape(4, 4)
    grey = np.concatenate([first, np.full((4, 4), 200)], axis=1)
    stored = to_blocks((grey / 255).astype(np.float32))
    np.testing.assert_array_equal(stored.ends[:, 0], [[10, 200], [80, 200]])
    assert stored.indices[0, :4].tolist() == [0, 7, 1, 2]
    assert stored.indices[2, 0] == 3
    assert stored.indices.max() <= 7
    expected = grey.astype(np.float64)
    expected[2, 0] = 40
    np.testing.assert_allclose(from_blocks(stored) * 255, expected, atol=1e-4)


def test_a_block_errs_by_a_fourteenth_of_its_span() -> None:
    """Half a step of a seventh, and half a grey level for the rounding to 8 bits."""
    values = np.random.default_rng(1).random((16, 24)).astype(np.float32)
    assert np.abs(from_blocks(to_blocks(values)) - values).max() <= 1 / 14 + 0.5 / 255 + 1e-6


def test_maps_are_padded_to_whole_blocks() -> None:
    padded = whole(np.arange(10, dtype=np.float32).reshape(2, 5))
    assert padded.shape == (4, 8)
    assert padded[3].tolist() == [5, 6, 7, 8, 9, 9, 9, 9]


def test_agreement() -> None:
    one = np.arange(20, dtype=np.float32)
    assert agreement(one, 2 * one) == (1, 1, 1)
    swapped = one.copy()
    swapped[[17, 19]] = swapped[[19, 17]]  # the top tenth is two: 19 and 18, then 17 and 18
    spearman, top, tenth = agreement(one, swapped)
    assert spearman == pytest.approx(1 - 6 * (2**2 + 2**2) / (20 * (20**2 - 1)))
    assert (top, tenth) == (1, 0.5)


def test_fewer_bits_agree_less(samples: Path) -> None:
    cases = clip_formats(Clip("tree", samples / "tree.mp4"), 3)
    assert [case["method"] for case in cases] == list(FORMATS)
    half, eight, four = (case["spearman"] for case in cases)
    assert half > eight > four > 0.9
    assert [case["channel_bytes"] for case in cases] == [2 * 7 * 16 * 20, 7 * 16 * 20, 7 * 16 * 20 // 2]
