"""How pictures of any size are divided."""

import numpy as np
import pytest

from foveate.pipeline.geometry import Geometry, tiles_to_cells


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


def test_each_tile_is_four_cells():
    assert tiles_to_cells(np.array([[1, 2]])).tolist() == [[1, 1, 2, 2], [1, 1, 2, 2]]
