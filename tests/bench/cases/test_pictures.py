"""What pictures paint, by hand, and the record."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.cases.pictures import painted, pictures
from foveate.bench.entry import exit_code
from foveate.pipeline.vlm.pictures import Picture


def test_parts_are_laid_over_the_first_picture_at_their_places() -> None:
    """A grey picture, and white parts of a quarter of it at half and at its own size."""
    grey = Picture(np.full((4, 5, 3), 100, np.uint8), None, 1)
    half = Picture(np.full((5, 5, 3), 255, np.uint8), (0, 0, 250, 250), 1)
    own = Picture(np.full((10, 10, 3), 200, np.uint8), (500, 750, 750, 1000), 1)
    seen = painted([grey, half, own], (40, 40, 3))
    expected = np.full((40, 40), 100)
    expected[:10, :10] = 255
    expected[30:40, 20:30] = 200
    assert (seen == expected[..., None]).all()


def test_the_record_is_complete(tmp_path: Path, samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pictures.json"
    assert exit_code(pictures, [str(samples / "pedestrians.mp4"), "--out", str(out), "--every", "60"]) == 0
    record = json.loads(out.read_text())
    (case,) = record["cases"]
    said = capsys.readouterr().err
    assert (case["name"], case["frames"], record["budget"], record["query"]) == ("pedestrians", 5, 68, "moving")
    for name, found in case["masks"].items():
        assert len(found["parts_samples"]) == found["frames"] > 2
        assert found["parts_mean"] == pytest.approx(math.fsum(found["parts_samples"]) / found["frames"])
        assert f"pedestrians, {name}: " in said
    asked = case["masks"]["tokens"]
    assert (asked["worse"], asked["parts_mean"] > asked["one_mean"]) == (0, True)
