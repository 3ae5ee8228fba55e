"""The library of compiled kernels: where it does not fit the code that calls it, and its versions by processor."""

import ctypes

import numpy as np
import pytest

from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.native.levels import LeafErrors
from foveate.pipeline.native.library import LIBRARY, POINTER, kernel


def test_kernels_older_than_the_code_are_told_when_they_are_loaded():
    with pytest.raises(ImportError, match="have no of_tomorrow: they are older than this code; install"):
        kernel("of_tomorrow")


@pytest.mark.parametrize("subsampled", [True, False])
@pytest.mark.parametrize("cells", [2, 4, 8, 16])
def test_leaf_errors_are_the_same_on_processors_without_avx2(subsampled: bool, cells: int):
    if not hasattr(LIBRARY, "find_errors_avx2"):
        pytest.skip("there is one version for all processors")
    geometry = Geometry(cells * 16, 75)
    rng = np.random.default_rng(cells)
    half = (38, cells * 8) if subsampled else (75, cells * 16)
    planes = tuple(rng.integers(0, 256, size).astype(np.uint8) for size in ((75, cells * 16), half, half))
    levels = Levels(geometry, subsampled)
    levels.update(planes, np.ones(geometry.tiles, np.bool_))
    found = [np.zeros(geometry.grid, np.float32) for _ in levels.errors]
    pointers = (POINTER * 4)(*(error.ctypes.data for error in found))
    leaves = LeafErrors((ctypes.c_double * 3)(*levels.weights), pointers, None, None, *geometry.grid)
    find = kernel("find_errors", POINTER, POINTER, *[ctypes.c_int32] * 3)
    for row in range(geometry.grid[0]):
        find(levels.pyramids, ctypes.byref(leaves), row, 0, cells)
    for error, true in zip(found, levels.errors, strict=True):
        assert true.min() > 0
        np.testing.assert_array_equal(error, true)
