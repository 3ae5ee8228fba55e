"""Embeddings carried along the flow answer as embeddings of every frame would, on the real clips."""

from pathlib import Path

import numpy as np
import pytest

from foveate.bench.case import Clip
from foveate.bench.cases.carrying import WAYS, clip_carrying
from foveate.bench.cases.patch_encoder import PatchEncoder


@pytest.mark.parametrize("name", ["pedestrians", "bunny", "tree"])
@pytest.mark.parametrize("way", ["as set by default", "windows of 64 pixels, where any cell is lost"])
def test_the_answers_agree_with_few_cells_encoded(samples: Path, name: str, way: str) -> None:
    """What was set for carried embeddings: 30 frames, Spearman 0.95, top 273 0.9, at 30% of the cells."""
    found = clip_carrying(Clip(name, samples / f"{name}.mp4"), WAYS[way], 30)
    assert found["spearman"] >= 0.95
    assert found["top"] >= 0.9
    assert found["encoded"] <= 0.3


def test_less_encoding_agrees_less(samples: Path) -> None:
    clip = Clip("pedestrians", samples / "pedestrians.mp4")
    often, seldom = (clip_carrying(clip, WAYS[way], 30) for way in ("as set by default", "every 30th frame"))
    assert seldom["encoded"] < often["encoded"]
    assert seldom["spearman"] < often["spearman"]


def test_the_stand_in_tells_colours_and_textures_apart_and_looks_at_nothing_else() -> None:
    rng = np.random.default_rng(0)
    picture = np.full((48, 64, 3), 128, np.uint8)
    picture[:16, :16] = (200, 30, 30)
    picture[16:32, :16] = rng.integers(0, 255, (16, 16, 3))
    encoder = PatchEncoder()
    vectors = encoder.encode_image(picture, 0)
    assert vectors.shape == (3, 4, 64)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, atol=1e-5)
    likeness = vectors.reshape(-1, 64) @ vectors[2, 3]
    assert likeness[0] < 0.7
    assert likeness[4] < 0.7
    picture[40:, 50:] = 0
    np.testing.assert_array_equal(encoder.encode_image(picture, 0)[:2, :2], vectors[:2, :2])
