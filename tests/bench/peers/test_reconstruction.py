"""Choosing by what the reader holds."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from foveate.bench.clips.footage import Footage
from foveate.bench.peers.reconstruction import cell_errors, gazing, greedy, replenishment

Make = Callable[..., Footage]


def test_errors_of_cells_are_sums_of_squares_of_all_planes() -> None:
    true = [np.zeros((20, 16), np.uint8), np.zeros((10, 8), np.uint8)]
    shown = [true[0].copy(), true[1].copy()]
    shown[0][3, 3], shown[0][19, 0], shown[1][9, 7] = 3, 2, 5
    assert cell_errors(shown, true).tolist() == [[9.0], [4.0 + 25.0]]


def test_replenishment_sends_what_is_most_wrong_and_nothing_that_is_right(footage_of_cells: Make) -> None:
    # The reader begins grey, 128: cells are off by 0, 2 and 72, then by 1, 2 and 0.
    footage = footage_of_cells([[128, 130, 200]], [[129, 130, 200]], [[129, 130, 200]], [[129, 130, 200]])
    sent = [frame.tokens.tolist() for frame in replenishment(footage, 1)]
    assert sent == [[[0, 2, 0]], [[0, 1, 0]], [[0, 0, 0]], []]


def test_replenishment_sees_drift_however_slow(footage_of_cells: Make) -> None:
    footage = footage_of_cells(*([[100 + level]] for level in range(4)))
    assert [len(frame.tokens) for frame in replenishment(footage, 1)] == [1] * 4


def test_greedy_takes_the_patch_that_gains_most_then_looks_again() -> None:
    held = np.array([[9.0, 9.0], [9.0, 0.0]])
    left = [np.zeros((2, 2)), np.array([[1.0, 1.0], [6.0, 3.0]])]
    # The coarse patch gains 8 + 8 + 3 - 3 = 16, a fine one 9. Then the fine ones gain 1, 1, 6, 3.
    assert greedy(held, left, 3).tolist() == [[0, 0, 1], [1, 0, 0], [1, 1, 0]]


def test_greedy_stops_where_nothing_is_gained() -> None:
    assert greedy(np.zeros((2, 2)), [np.zeros((2, 2))], 5).shape == (0, 3)


def test_gazing_needs_one_token_for_a_plain_picture_and_then_none(footage_of_cells: Make) -> None:
    plain = [[50] * 8] * 8
    first, second = (frame.tokens.tolist() for frame in gazing(footage_of_cells(plain, plain), 10))
    assert (first, second) == ([[0, 0, 3]], [])


def test_each_token_of_greedy_gains_less_than_the_one_before_where_they_do_not_overlap() -> None:
    held = np.random.default_rng(2).uniform(0, 9, (5, 7))
    order = [held[row, column] for row, column, _ in greedy(held.copy(), [np.zeros((5, 7))], 20).tolist()]
    assert all(one >= other for one, other in pairwise(order))
    assert len(order) == 20
