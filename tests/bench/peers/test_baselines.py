"""The peers on grids of a few cells, with answers worked out by hand."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.footage import Footage, cell_changes, read_footage
from foveate.bench.peers.baselines import (
    BASELINES,
    cell_features,
    dtd,
    evs,
    highest,
    random,
    rlt,
    saliency,
    stc,
    uniform,
)

Make = Callable[..., Footage]


def cells(masks: list[np.ndarray]) -> list[list[list[int]]]:
    return [mask.astype(int).tolist() for mask in masks]


def test_uniform_takes_every_second_cell(footage_of_cells: Make) -> None:
    plain = [[9, 9, 9, 9], [9, 9, 9, 9]]
    assert cells(uniform(footage_of_cells(plain, plain), 4)) == [[[1, 0, 1, 0], [1, 0, 1, 0]]] * 2


def test_uniform_with_a_budget_beyond_the_grid(footage_of_cells: Make) -> None:
    assert cells(uniform(footage_of_cells([[9, 9]]), 273)) == [[[1, 1]]]


def test_random_draws_afresh_and_again_the_same(footage_of_cells: Make) -> None:
    footage = footage_of_cells(*[[[9] * 8] * 8] * 3)
    once, again = random(footage, 5), random(footage, 5)
    assert [int(mask.sum()) for mask in once] == [5, 5, 5]
    assert cells(once) == cells(again)
    assert cells(once)[0] != cells(once)[1]


def test_changes_are_mean_absolute_differences(footage_of_cells: Make) -> None:
    (change,) = cell_changes(footage_of_cells([[0, 51]], [[51, 0]]).pictures)
    np.testing.assert_allclose(change, [[0.2, 0.2]], rtol=1e-6)  # float32 of 51/255


def test_evs_takes_what_changed_most_and_the_first_frame_whole(footage_of_cells: Make) -> None:
    footage = footage_of_cells([[10, 10, 10]], [[10, 13, 90]], [[11, 13, 90]])
    assert cells(evs(footage, 1)) == [[[1, 1, 1]], [[0, 0, 1]], [[1, 0, 0]]]


def test_dtd_has_one_threshold_for_the_whole_clip(footage_of_cells: Make) -> None:
    # Changes 3 and 80, then 1 and 0: the two greatest of the clip are both in its second frame.
    footage = footage_of_cells([[10, 10]], [[13, 90]], [[14, 90]])
    assert cells(dtd(footage, 1)) == [[[1, 1]], [[1, 1]], [[0, 0]]]


def test_dtd_leaves_ties_out_rather_than_exceed_the_budget(footage_of_cells: Make) -> None:
    footage = footage_of_cells([[10, 10, 10]], [[15, 15, 15]])
    assert cells(dtd(footage, 2)) == [[[1, 1, 1]], [[0, 0, 0]]]


def test_rlt_compares_the_front_with_the_back_of_the_next_tubelet(footage_of_cells: Make) -> None:
    # Tubelets (0, 1), (2, 3), (4, 5). Frame 0 against 3: cell 0 moves by 50, cell 1 by 1. Frame 2 against 5: by 0, 7.
    frames = ([[0, 0]], [[0, 0]], [[50, 0]], [[50, 1]], [[50, 9]], [[50, 7]])
    assert cells(rlt(footage_of_cells(*frames), 1)) == [[[1, 1]]] * 2 + [[[1, 0]]] * 2 + [[[0, 1]]] * 2


def test_rlt_has_no_tubelet_for_a_last_frame_alone(footage_of_cells: Make) -> None:
    assert cells(rlt(footage_of_cells([[0]], [[0]], [[9]]), 1)) == [[[1]], [[1]], [[0]]]


def test_stc_features_have_length_1(footage_of_cells: Make) -> None:
    (picture,) = footage_of_cells([[10, 200], [30, 40]]).pictures
    features = cell_features(picture)
    assert features.shape == (2, 2, 48)
    np.testing.assert_allclose(features, 48**-0.5)  # plain grey cells all point the same way


def test_stc_takes_the_odd_one_out(footage_of: Make) -> None:
    luma = np.full((16, 80), 90, np.uint8)
    luma[:8, 32:48] = 250  # half of cell 2: of another direction than the plain cells, however bright these are
    assert cells(stc(footage_of(luma, luma), 1)) == [[[0, 0, 1, 0, 0]]] * 2


def test_stc_turns_from_what_was_there_before(footage_of: Make) -> None:
    # Two kinds of cells, two of each: in a first frame all are as far from the mean. After frames full of the
    # first kind, the second is farther.
    plain = np.full((16, 64), 90, np.uint8)
    mixed = plain.copy()
    mixed[:8, 32:] = 250
    assert cells(stc(footage_of(plain, mixed), 2))[1] == [[0, 0, 1, 1]]


def test_saliency_takes_as_many_cells_as_the_budget(tiny_clip: Path) -> None:
    masks = saliency(read_footage(tiny_clip, 5), 7)
    assert [mask.shape for mask in masks] == [(4, 6)] * 5
    assert [int(mask.sum()) for mask in masks] == [7] * 5


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "saliency"])
def test_one_mask_per_frame_and_a_single_frame_works(name: str, footage_of_cells: Make) -> None:
    (mask,) = BASELINES[name](footage_of_cells([[1, 2], [3, 4]]), 2)
    assert (mask.shape, mask.dtype) == ((2, 2), np.bool_)


def test_of_equals_the_first_is_highest() -> None:
    assert highest(np.array([[1.0, 2.0], [2.0, 2.0]]), 2).tolist() == [[False, True], [True, False]]
