"""Maps carried along the flow: where they come from, and which cells may be reused."""

import numpy as np
import pytest

from foveate.pipeline.cascade.cache import Cache
from foveate.pipeline.cascade.scores import peak
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.settings import CacheSettings

SHAPE = (4, 6)  # rows, columns


def flow(dx=0.0, dy=0.0, confidence=1.0):
    """The same for every cell."""
    return Flow(*(np.full(SHAPE, value, np.float32) for value in (dx, dy, confidence)))


def cache(**settings):
    """One map of each kind, all cells new."""
    made = Cache(SHAPE, ("score",), ("label",), CacheSettings(**settings))
    made.advance_age(np.zeros(SHAPE, np.bool_))
    return made


def test_content_comes_from_where_the_flow_points_and_identities_are_not_averaged():
    held = cache()
    columns = np.indices(SHAPE, np.float32)[1]
    held.maps = {"score": columns / 10, "label": columns * 7}
    held.warp(flow(dx=1.25))
    # Cells 0 to 3 find 1.25 to 4.25; beyond the last column it stands still.
    assert held.maps["score"][2, :4] == pytest.approx([0.125, 0.225, 0.325, 0.425], abs=1e-3)  # 1/32 of a cell
    assert held.maps["label"][2, :4].tolist() == [7, 14, 21, 28]


@pytest.mark.parametrize(
    ("dx", "dy", "lost"),
    [
        (0.4, 0.0, np.s_[:0, :0]),  # less than half a cell out: the nearest cell is still one of the grid's
        (0.6, 0.0, np.s_[:, 5:]),
        (-0.4, 0.0, np.s_[:0, :0]),
        (-0.6, 0.0, np.s_[:, :1]),
        (0.0, 0.6, np.s_[3:, :]),
        (0.0, -0.6, np.s_[:1, :]),
        (2.6, -1.6, (np.arange(4)[:, None] < 2) | (np.arange(6) > 2)),
    ],
)
def test_a_cell_whose_origin_lies_outside_is_not_reused(dx, dy, lost):
    expected = np.ones(SHAPE, np.bool_)
    expected[lost] = False
    assert (cache().warp(flow(dx, dy)) == expected).all()


def test_flow_below_the_confidence_is_not_followed():
    sure = flow()
    sure.confidence[1, 2], sure.confidence[1, 3] = 0.59, 0.61
    valid = cache(confidence=0.6).warp(sure)
    assert np.argwhere(~valid).tolist() == [[1, 2]]


@pytest.mark.parametrize("moved", [None, flow()])
def test_a_cell_is_reused_for_so_many_frames(moved):
    held = cache(max_age=3)
    held.advance_age(np.arange(24).reshape(SHAPE) != 8)  # one frame old, but for cell (1, 2)
    for oldest in (True, True, False):
        valid = held.warp(moved)
        assert valid[1, 2]
        assert valid[0, 0] == oldest
        held.advance_age(np.ones(SHAPE, np.bool_))


def test_the_age_moves_along():
    held = cache(max_age=1)
    held.advance_age(np.arange(24).reshape(SHAPE) != 8)  # all are too old, but for cell (1, 2)
    assert np.argwhere(held.warp(flow(dx=-2.0, dy=1.0))).tolist() == [[0, 4]]


def test_nothing_is_left_after_clearing():
    held = cache()
    held.maps["score"] = np.ones(SHAPE, np.float32)
    held.clear()
    assert not held.maps["score"].any()
    assert not held.warp(None).any()


def test_most_of_the_score_is_found_where_most_lies_together_and_never_in_the_padding():
    geometry = Geometry(330, 250)  # 21x16 cells, on a grid of 22x16
    assert geometry.grid == (16, 22)
    score = np.zeros(geometry.grid, np.float32)
    score[3, 18] = 1.0
    score[8:13, 5:10] = 0.1  # 2.5 in all, around (10, 7)
    assert peak(score, geometry) == (7 * 16 + 8, 10 * 16 + 8)
    score[:, 21] = 9.0  # padding
    assert peak(score, geometry) == (7 * 16 + 8, 10 * 16 + 8)
    assert peak(np.full(geometry.grid, 9.0, np.float32), geometry)[0] < 330
