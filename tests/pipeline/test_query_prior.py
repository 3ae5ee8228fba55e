"""The query prior: detail assumed hidden in coarse tokens, and the weight of errors where nothing matches."""

import numpy as np
import pytest

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cascade.query_prior import (
    detail_weight,
    error_weight,
    errors_with_prior,
    hidden_error,
    reader_error_with_prior,
    stale_weight,
)
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings


def row(*values):
    """A grid of one row."""
    return np.array([values], np.float32)


def test_what_matches_by_half_counts_whole_and_the_rest_next_to_nothing():
    assert error_weight(row(0.0, 0.25, 0.5, 1.0))[0] == pytest.approx([0.003, 0.5015, 1.0, 1.0])


def test_the_finest_detail_counts_half_where_cells_match_and_a_hundredth_elsewhere():
    assert detail_weight(row(0.0, 0.25, 0.5, 1.0))[0] == pytest.approx([0.01, 0.255, 0.5, 0.5])


def test_coarse_tokens_hide_what_is_asked_for_and_of_the_finest_detail_a_share_counts():
    """LODs 1 to 4 hide 1, 1 + 1, 2 + 4 and 6 + 16 times as much, each above another 16."""
    errors = [row(100, 100), *[row(300, 300) for _ in range(5)]]
    found = errors_with_prior(errors, errors[0], row(0, 2), row(0, 1))
    assert [error[0, 0] for error in found] == pytest.approx([1, 201, 201, 201, 201, 201])
    assert [error[0, 1] for error in found] == pytest.approx([52, 254, 262, 294, 326, 358])


def test_a_reader_lacks_what_is_hidden_by_the_lod_that_it_saw_and_at_lod_0_no_detail():
    lod = np.array([[1, 1, 0, 0, 1, 4]], np.uint8)
    held = reader_error_with_prior(
        row(150, 50, 150, 150, 150, 150),
        lod,
        row(3, 1, 3, 1, 1, 1),
        row(*[100] * 6),
        row(0, 0, 0, 2, 2, 2),
        row(0, 0, 0, 1, 1, 1),
    )
    assert held[0] == pytest.approx([153, 0, 450, 150, 102, 144])  # (150 - 99) * 3; never below nothing


def test_what_the_reader_believes_and_has_stale_counts_as_what_is_asked_for_does():
    """Where participation fell from 1 to 0 an error counts as it did; where it grew, as ever."""
    stale = stale_weight(row(1.0, 1.0, 0.25, 0.0), row(0.0, 0.25, 0.25, 1.0))
    assert stale[0] == pytest.approx([1 / 0.003, 1 / 0.5015, 1, 1])


def test_what_is_hidden_grows_with_the_square_of_the_relevance_whatever_the_weight():
    weight = row(0.5, 0.05, 1.0)
    counts = hidden_error(row(1.0, 1.0, 0.5), weight) * weight
    assert counts[0, 0] == pytest.approx(counts[0, 1])
    assert counts[0, 2] == pytest.approx(counts[0, 0] / 4)


def test_in_stream_memory_a_plain_thing_that_is_asked_for_is_seen_sharply_once():
    """A red square of 128 pixels without any detail, on grey, at rest: fine tokens on all of it, and no more."""
    luma, cb, cr = (np.full((240, 320), value, np.uint8) for value in (128, 128, 128))
    for plane, value in ((luma, 76), (cb, 85), (cr, 255)):  # red by BT.601, full range
        plane[64:192, 96:224] = value
    settings = Settings(query=("red",), budget=60, allocation={"memory": "stream"})
    engine = CpuEngine(plan_stream(settings), Feedback())
    frames = (Frame(index, index / 25, luma, (cb, cr), Colour("bt601", True)) for index in range(20))
    sharp, sent = np.zeros((15, 20), np.bool_), []
    for step in engine.cascade(engine.pyramid(engine.upload(frames))):
        fine = step.selection.lod == 0
        sharp[step.selection.y[fine] // 16, step.selection.x[fine] // 16] = True
        sent.append(np.count_nonzero(fine))
        assert len(fine) <= 60
    assert sharp[4:12, 6:14].all()
    assert sum(sent[:4]) < 2 * 64  # cells of the square, and some at its rims
    assert sent[4:] == [0] * 16
