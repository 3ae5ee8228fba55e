"""A picture as a query to the attributes encoder: its main colours."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.query.attributes.colours import NAMES
from foveate.pipeline.query.attributes.encoder import AttributesEncoder
from foveate.pipeline.query.attributes.shown import dominant
from foveate.pipeline.query.phrase import Phrase
from foveate.pipeline.query.program import relevance
from foveate.pipeline.stream import open_stream

RGB = {"red": (220, 20, 20), "white": (250, 250, 250), "blue": (20, 40, 220), "grey": (128, 128, 128)}


def picture(**shares: int) -> np.ndarray:
    """Columns of each colour, R'G'B' uint8[20, 100, 3]; shares are percents."""
    return np.concatenate([np.full((20, share, 3), RGB[name], np.uint8) for name, share in shares.items()], axis=1)


def test_the_colours_of_a_fifth_of_the_picture_count() -> None:
    assert [NAMES[index] for index in dominant(picture(red=60, white=30, blue=10))] == ["white", "red"]
    assert [NAMES[index] for index in dominant(picture(blue=100))] == ["blue"]


def test_a_cell_with_any_of_them_is_relevant_and_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "crop.png"
    cv2.imwrite(str(path), picture(red=50, white=50)[..., ::-1])
    compiled = AttributesEncoder().compile([Phrase(str(path), image=str(path))])
    assert compiled.program is not None
    (note,) = compiled.notes
    assert "its colours only" in note
    inputs = np.zeros((18, 4), np.float32)
    for cell, shares in enumerate(
        ({"red": 1.0}, {"white": 0.2, "red": 0.2}, {"blue": 1.0}, {"grey": 0.98, "red": 0.02})
    ):
        for name, share in shares.items():
            inputs[NAMES.index(name), cell] = share
    np.testing.assert_allclose(relevance(compiled.program, inputs)[0], [1, 1, 0, 0], atol=1e-6)


def test_from_a_picture_to_tokens(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = rng.integers(100, 156, (256, 480, 1), np.uint8).repeat(3, axis=2)
    frame[64:128, 320:384] = RGB["red"][::-1]
    cv2.imwrite(str(tmp_path / "frame.png"), frame)
    cv2.imwrite(str(tmp_path / "crop.png"), frame[70:120, 325:380])
    asked = {"query_image": [str(tmp_path / "crop.png")], "budget": 60, "engine": "cpu"}
    with open_stream(str(tmp_path / "frame.png"), **asked) as stream:
        (found,) = stream
    fine = {(y // 16, x // 16) for x, y, lod in zip(found.x, found.y, found.lod, strict=True) if lod == 0}
    assert {(row, column) for row in range(4, 8) for column in range(20, 24)} <= fine


def test_an_example_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent\.png") as caught:
        open_stream(str(tmp_path / "any.mp4"), query_image=[str(tmp_path / "absent.png")])
    assert "\n" not in str(caught.value)
