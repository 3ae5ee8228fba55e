"""Rectangles, grids and covers of tile masks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from foveate.pipeline.geometry import Geometry, Rect, around, loose_cover, tiles_to_cells

masks = hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=40))


@pytest.mark.parametrize(
    ("size", "tiles", "grid", "cells", "span"),
    [
        ((1, 1), (1, 1), (2, 2), 1, (32, 32)),
        ((17, 1), (1, 1), (2, 2), 2, (32, 32)),
        ((1920, 1080), (34, 60), (68, 120), 68 * 120, (96, 128)),
        ((321, 241), (8, 11), (16, 22), 16 * 21, (32, 32)),
        ((7680, 4320), (135, 240), (270, 480), 270 * 480, (288, 480)),
    ],
)
def test_divisions_of_a_picture(size, tiles, grid, cells, span):
    geometry = Geometry(*size)
    assert geometry.tiles == tiles
    assert geometry.grid == grid
    assert geometry.cells == cells
    assert geometry.span == span
    assert geometry.level(4) == grid


@given(masks)
def test_a_loose_cover_holds_every_tile(mask):
    covered = np.zeros_like(mask)
    for rect in loose_cover(mask):
        covered[rect.slices] = True
    assert (covered | ~mask).all()
    if not mask.any():
        assert not covered.any()


def test_far_apart_changes_stay_apart():
    mask = np.zeros((40, 40), np.bool_)
    mask[0, 0] = mask[39, 39] = True
    assert sorted(loose_cover(mask)) == [Rect(0, 0, 1, 1), Rect(39, 39, 40, 40)]


@given(masks.filter(np.any))
def test_the_box_around_a_mask_is_tight(mask):
    box = around(mask)
    inner = mask[box.slices]
    assert inner.sum() == mask.sum()
    assert inner[0].any()
    assert inner[-1].any()
    assert inner[:, 0].any()
    assert inner[:, -1].any()


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 5))
def test_a_grown_rectangle_stays_inside(top, left, margin):
    rect = Rect(top, left, top + 1, left + 1).grown(margin, 10, 10)
    assert rect.top == max(top - margin, 0)
    assert rect.right == min(left + 1 + margin, 10)


def test_each_tile_is_four_cells():
    assert tiles_to_cells(np.array([[1, 2]])).tolist() == [[1, 1, 2, 2], [1, 1, 2, 2]]
