"""Signs are where the record says; areas and lines are cut out of the picture as they should be."""

import cv2
import numpy as np
import pytest

from foveate.bench.cases.text_reading import areas_of, upright
from foveate.bench.reader.painting import NOT_SHOWN
from foveate.bench.scenes.signs import SIZES, enlarged, signs_on
from foveate.pipeline.text.boxes import Box


def test_signs_have_different_words_two_of_each_size() -> None:
    pytest.importorskip("PIL")
    background = enlarged(np.full((54, 96, 3), 128, np.uint8))
    signs = signs_on(background, 7)
    told = [word for size in SIZES for word in signs.words[size]]
    assert len(told) == len(set(told)) == 2 * len(SIZES)
    assert signs.picture.shape == (1080, 1920, 3)
    labels = cv2.connectedComponents((signs.picture != 128).any(axis=2).astype(np.uint8))[0] - 1
    assert labels == len(told)  # none touches another
    assert np.array_equal(signs.picture, signs_on(background, 7).picture)


def test_areas_are_the_boxes_around_fine_tokens() -> None:
    lods = np.full((8, 10), 3, np.int8)
    lods[1, 1:4], lods[2, 3] = 0, 1  # one area, connected
    lods[6:8, 8:10] = 1
    lods[0, 9] = NOT_SHOWN
    picture = np.arange(128 * 160 * 3, dtype=np.uint32).reshape(128, 160, 3).astype(np.uint8)
    first, second = areas_of(picture, lods)
    assert np.array_equal(first, picture[16:48, 16:64])
    assert np.array_equal(second, picture[96:128, 128:160])


@pytest.mark.parametrize("degrees", [-60, -20, 0, 20, 60])
def test_lines_are_turned_upright(degrees: int) -> None:
    """A bar whose first fifth is dark, at angles at which text is still read from the left."""
    turn = cv2.getRotationMatrix2D((100, 100), -degrees, 1.0)
    corners = np.array([[40, 90], [160, 90], [160, 110], [40, 110]], np.float32)
    flat = np.full((200, 200, 3), 90, np.uint8)
    flat[90:110, 40:160] = 255
    flat[90:110, 40:64] = 0
    picture = np.asarray(cv2.warpAffine(flat, turn, (200, 200), borderValue=(90, 90, 90)), np.uint8)
    placed = np.asarray(cv2.transform(corners[None], turn)[0], np.float32)
    for shift in range(4):  # whichever corner a box begins with
        line = upright(picture, Box(np.roll(placed, shift, axis=0), 1.0))
        assert line.shape == pytest.approx((20, 120, 3), abs=1)
        assert line[5:15, 2:20].mean() < 10
        assert line[5:15, 30:116].mean() > 245
