"""Choosing cells without comparing frames, on grids of a few cells."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from foveate.bench.clips.footage import Footage, read_footage
from foveate.bench.peers.cells import highest, reaching
from foveate.bench.peers.plain import random, saliency, uniform

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


def test_saliency_takes_as_many_cells_as_the_budget(tiny_clip: Path) -> None:
    masks = saliency(read_footage(tiny_clip, 5), 7)
    assert [mask.shape for mask in masks] == [(4, 6)] * 5
    assert [int(mask.sum()) for mask in masks] == [7] * 5


def test_of_equals_the_first_is_highest() -> None:
    assert highest(np.array([[1.0, 2.0], [2.0, 2.0]]), 2).tolist() == [[False, True], [True, False]]


def test_a_threshold_leaves_ties_out_rather_than_exceed_the_count() -> None:
    assert reaching(np.array([5.0, 7.0, 5.0]), 2).tolist() == [False, True, False]
    assert reaching(np.array([5.0, 7.0, 5.0]), 3).tolist() == [True, True, True]
    assert reaching(np.array([5.0, 7.0]), -4).tolist() == [False, False]
