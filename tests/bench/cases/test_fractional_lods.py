"""Tokens at one LOD between the levels: which LOD fits, and how samples become a picture again."""

import numpy as np
import pytest

from foveate.bench.cases import fractional_lods


def test_the_finest_lod_within_a_budget() -> None:
    # 1280x720 has 20 x 11.25 tokens of 64 pixels.
    assert fractional_lods.finest((720, 1280), 273, whole=True) == (2.0, (12, 20))
    lod, (rows, columns) = fractional_lods.finest((720, 1280), 273, whole=False)
    assert rows * columns <= 273
    finer = 16 * 2 ** (lod - 1 / 256)
    assert -(-720 // finer) * -(-1280 // finer) > 273
    assert fractional_lods.finest((16, 16), 1, whole=False) == (0.0, (1, 1))


def test_samples_are_enlarged_with_their_centres_aligned() -> None:
    ramp = (np.arange(8) + 0.5).astype(np.float32)[None].repeat(2, 0)
    shown = fractional_lods.enlarged(ramp, (5, 20), 2.5)
    assert shown.shape == (5, 20)
    assert np.abs(shown[:, 1:-1] - (np.arange(1, 19) + 0.5) / 2.5).max() < 1e-6
    assert (fractional_lods.enlarged(ramp, (2, 8), 1) == ramp).all()


@pytest.mark.parametrize("lod", [0.5, 1.0, 1.3])
def test_a_ramp_is_seen_as_it_is(lod: float) -> None:
    """Linear filters give it back at any LOD, away from the edges."""
    pytest.importorskip("torch")
    ramp = np.arange(128, dtype=np.uint8)[None].repeat(128, 0)
    count = int(np.ceil(128 / (16 * 2**lod)))
    shown = fractional_lods.covered(ramp, lod, count, count)
    assert np.abs(shown - ramp)[:, 8:-8].max() < 1e-6
