"""How pictures of any size are divided."""

import numpy as np
import pytest

from foveate.pipeline.geometry import Geometry, tiles_to_cells


@pytest.mark.parametrize(
    ("size", "tiles", "grid", "cells", "span"),
    [
        ((1, 1), (1, 1), (2, 2), 1, (16, 16)),
        ((17, 1), (1, 1), (2, 2), 2, (16, 16)),
        ((1920, 1080), (34, 60), (68, 120), 68 * 120, (80, 128)),
        ((321, 241), (8, 11), (16, 22), 16 * 21, (16, 32)),
        ((7680, 4320), (135, 240), (270, 480), 270 * 480, (272, 480)),
    ],
)
def test_divisions_of_a_picture(size, tiles, grid, cells, span):
    geometry = Geometry(*size)
    assert geometry.tiles == tiles
    assert geometry.grid == grid
    assert geometry.cells == cells
    assert geometry.span == span
    assert geometry.level(4) == grid


def test_levels_above_the_fourth_are_halves_rounded_up():
    geometry = Geometry(20000, 100)  # 1250 x 8 cells
    assert [geometry.level(level) for level in (4, 5, 6, 7, 8, 12)] == [
        (8, 1250),
        (4, 625),
        (2, 313),
        (1, 157),
        (1, 79),
        (1, 5),
    ]


@pytest.mark.parametrize(
    ("size", "most", "merge", "top"),
    [
        ((1920, 1080), 273, 1, 4),  # 40 tokens of LOD 4
        ((1920, 1080), 40, 1, 4),
        ((1920, 1080), 39, 1, 5),  # 12 of LOD 5
        ((1920, 1080), 1, 1, 7),  # 2048 pixels a side
        ((7680, 4320), 273, 1, 5),  # 510 of LOD 4
        ((8192, 8192), 1, 1, 9),
        ((8193, 8192), 1, 1, 10),
        ((20000, 2), 1, 1, 11),
        ((1, 1), 1, 1, 4),
        ((1920, 1080), 12, 2, 4),  # groups of 512 pixels a side
        ((1920, 1080), 11, 2, 5),
        ((1920, 1080), 6, 3, 4),  # groups of 768 pixels a side
        ((1920, 1080), 5, 3, 5),
    ],
)
def test_the_least_lod_that_covers_the_picture(size, most, merge, top):
    assert Geometry(*size).top(most, merge) == top
    with pytest.raises(ValueError, match="at least 1 token or group is needed to cover a picture, got 0"):
        Geometry(*size).top(0, merge)


@pytest.mark.parametrize(
    ("size", "merge", "inside"),
    [
        ((96, 33), 1, [[1] * 6, [1] * 6, [1] * 6, [0] * 6]),
        ((96, 33), 2, [[1] * 3, [1] * 3]),
        ((97, 96), 3, [[1, 1, 1], [1, 1, 1]]),
        ((96, 97), 3, [[1, 1], [1, 1], [1, 1]]),
        ((145, 1), 3, [[1, 1, 1, 1]]),  # 10 cells across; the last group has one, 8 of its 9 are off the grid
        ((16, 161), 3, [[1], [1], [1], [1]]),  # 12 cells down, 11 with any pixel
        ((16, 65), 3, [[1], [1]]),  # 6 cells down, 5 with any pixel
    ],
)
def test_groups_with_any_pixel(size, merge, inside):
    assert Geometry(*size).units(merge).astype(int).tolist() == inside


def test_each_tile_is_four_cells():
    assert tiles_to_cells(np.array([[1, 2]])).tolist() == [[1, 1, 2, 2], [1, 1, 2, 2]]
