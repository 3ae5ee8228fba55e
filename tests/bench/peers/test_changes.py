"""The peers that compare frames, on grids of a few cells, with answers worked out by hand."""

from collections.abc import Callable

import numpy as np
import pytest

from foveate.bench.clips.footage import Footage, cell_changes
from foveate.bench.peers.changes import dtd, evs, evs_causal, rlt

Make = Callable[..., Footage]


def cells(masks: list[np.ndarray]) -> list[list[list[int]]]:
    return [mask.astype(int).tolist() for mask in masks]


def test_changes_are_mean_absolute_differences(footage_of_cells: Make) -> None:
    (change,) = cell_changes(footage_of_cells([[0, 51]], [[51, 0]]).pictures)
    np.testing.assert_allclose(change, [[0.2, 0.2]], rtol=1e-6)  # float32 of 51/255


def test_evs_takes_what_changed_most_in_the_clip_the_first_frame_within_the_total(footage_of_cells: Make) -> None:
    # Three cells, two a frame: 6 in all, of which the first frame takes 3. Changes 0, 3, 80, then 1, 5, 70.
    footage = footage_of_cells([[10, 10, 10]], [[10, 13, 90]], [[11, 18, 20]])
    assert cells(evs(footage, 2)) == [[[1, 1, 1]], [[0, 0, 1]], [[0, 1, 1]]]


def test_evs_shows_the_first_frame_whole_even_beyond_the_total(footage_of_cells: Make) -> None:
    footage = footage_of_cells([[10, 10, 10, 10]], [[10, 10, 99, 10]])
    assert cells(evs(footage, 1)) == [[[1, 1, 1, 1]], [[0, 0, 0, 0]]]


def test_the_causal_one_has_as_many_in_each_later_frame(footage_of_cells: Make) -> None:
    # 2 a frame are 6 in all, less the first 3: 1 in each later frame.
    footage = footage_of_cells([[10, 10, 10]], [[10, 13, 90]], [[11, 13, 90]])
    assert cells(evs_causal(footage, 2)) == [[[1, 1, 1]], [[0, 0, 1]], [[1, 0, 0]]]


def test_dtd_compares_the_front_of_a_tubelet_with_the_back_of_the_next(footage_of_cells: Make) -> None:
    # Tubelets (0, 1), (2, 3), (4, 5). Frame 0 against 3: cell 0 moves by 50, cell 1 by 1. Frame 2 against 5: by 0, 7.
    # 1.5 patches a frame are no whole number: 2 a frame are 6 tubelets, of which the first takes 2, and all are kept.
    frames = ([[0, 0]], [[0, 0]], [[50, 0]], [[50, 1]], [[50, 9]], [[50, 7]])
    footage = footage_of_cells(*frames)
    assert cells(dtd(footage, 1)) == [[[1, 1]]] * 2 + [[[1, 0]]] * 2 + [[[0, 0]]] * 2
    assert cells(dtd(footage, 2)) == [[[1, 1]]] * 6


def test_a_last_frame_alone_has_no_tubelet(footage_of_cells: Make) -> None:
    footage = footage_of_cells([[0]], [[0]], [[9]])
    assert cells(dtd(footage, 1)) == cells(rlt(footage, 1)) == [[[1]], [[1]], [[0]]]


def test_rlt_begins_anew_every_16_frames(footage_of_cells: Make) -> None:
    still = footage_of_cells(*[[[40, 90, 20, 10]]] * 20)
    sums = [int(mask.sum()) for mask in rlt(still, 1)]
    assert sums == [4, 4, *[0] * 14, 4, 4, 0, 0]
    assert [int(mask.sum()) for mask in dtd(still, 1)] == [4, 4, *[0] * 18]


@pytest.mark.parametrize("peer", [evs, evs_causal, dtd, rlt])
def test_the_total_is_kept(peer: Callable[[Footage, int], list[np.ndarray]], footage_of_cells: Make) -> None:
    generator = np.random.default_rng(3)
    footage = footage_of_cells(*generator.integers(0, 255, (20, 3, 4)).tolist())
    masks = peer(footage, 6)
    assert len(masks) == 20
    assert sum(int(mask.sum()) for mask in masks) == pytest.approx(120, abs=20)
    assert sum(int(mask.sum()) for mask in masks) <= 120
