"""Boxes around lines of text, from planted probabilities, and the cells that they touch."""

import numpy as np
import pytest

from foveate.pipeline.text.boxes import Box, at_cells, boxes_in


def planted(*lines, height=120, width=200):
    """Probabilities: ``lines`` of (top, bottom, left, right, probability)."""
    probability = np.full((height, width), 0.05, np.float32)
    for top, bottom, left, right, value in lines:
        probability[top:bottom, left:right] = value
    return probability


def test_a_box_is_grown_by_one_and_a_half_times_its_area_over_its_perimeter():
    """D = A r / L (Liao et al. 2020): of 100 x 10 samples 1.5 * 1000 / 220 = 6.8 on each side."""
    (box,) = boxes_in(planted((40, 50, 60, 160, 0.8)), 240, 800)  # two pixels per sample down, four across
    assert box.confidence == pytest.approx(0.8)
    rim = 1.5 * 1000 / 220
    assert box.corners.min(axis=0) == pytest.approx([4 * (60 - rim), 2 * (40 - rim)], abs=0.1)
    assert box.corners.max(axis=0) == pytest.approx([4 * (160 + rim), 2 * (50 + rim)], abs=0.1)


def test_each_line_has_a_box_and_a_slanted_one_a_slanted_box():
    probability = planted((10, 18, 10, 90, 0.9))
    row, column = np.indices(probability.shape)
    along, beside = (column - 100 + row - 70) / np.sqrt(2), (row - 70 - column + 100) / np.sqrt(2)
    probability[(abs(along) < 40) & (abs(beside) < 5)] = 0.7  # 80 x 10 samples, at 45 degrees
    flat, slanted = sorted(boxes_in(probability, 120, 200), key=lambda box: -box.confidence)
    assert flat.confidence == pytest.approx(0.9)
    sides = np.linalg.norm(np.diff(slanted.corners, axis=0, append=slanted.corners[:1]), axis=1)
    rim = 1.5 * 800 / 180
    assert sorted(sides[:2]) == pytest.approx([10 + 2 * rim, 80 + 2 * rim], abs=2)  # a sample more or less on each side
    assert slanted.corners.mean(axis=0) == pytest.approx([100.5, 70.5], abs=1)


@pytest.mark.parametrize(
    "line",
    [
        (40, 50, 60, 160, 0.25),  # no sample is likely
        (40, 50, 60, 160, 0.45),  # likely, and not sure
        (40, 42, 60, 160, 0.9),  # a scratch
    ],
)
def test_what_is_unsure_or_thin_is_no_text(line):
    assert boxes_in(planted(line), 120, 200) == []


def test_everywhere_text_is_one_box_and_nowhere_none():
    assert len(boxes_in(np.ones((32, 32), np.float32), 1, 1)) == 1
    assert boxes_in(np.zeros((32, 32), np.float32), 1, 1) == []


def test_cells_have_the_confidence_of_the_surest_box_that_touches_them():
    def box(left, top, right, bottom, confidence):
        return Box(np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32), confidence)

    sure, unsure = box(17, 1, 47, 15, 0.9), box(30, 0, 79, 31, 0.5)
    for boxes in ([sure, unsure], [unsure, sure]):
        found = at_cells(boxes, 3, 6, 16)
        assert found.dtype == np.float32
        assert found == pytest.approx(
            np.array([[0, 0.9, 0.9, 0.5, 0.5, 0], [0, 0.5, 0.5, 0.5, 0.5, 0], [0, 0, 0, 0, 0, 0]])
        )
    beyond = at_cells([box(-50, -20, 10, 300, 0.7)], 3, 6, 16)  # reaches beyond the picture
    assert beyond[:, 0] == pytest.approx(0.7)
    assert not beyond[:, 1:].any()
