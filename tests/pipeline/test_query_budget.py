"""Where a query puts the budget: on real pictures, with relevance planted by hand."""

import av
import numpy as np
import pytest

from foveate.pipeline.cascade.problem import Problem
from foveate.pipeline.cascade.query_prior import error_weight, errors_with_prior, hidden_error
from foveate.pipeline.cascade.rate_distortion import RateDistortion
from foveate.pipeline.geometry import Geometry

BUDGETS = (34, 68, 136, 273)
AREAS = range(12)  # seeds


def pictures(clip):
    """Luma of three frames, float[rows * 16, columns * 16]: padded to the Grid by repeating the edge."""
    with av.open(str(clip)) as container:
        for index, frame in enumerate(container.decode(video=0)):
            if index in (0, 40, 80):
                luma = frame.to_ndarray(format="gray").astype(np.float64)
                rows, columns = Geometry(frame.width, frame.height).grid
                yield (
                    Geometry(frame.width, frame.height),
                    np.pad(luma, ((0, rows * 16 - frame.height), (0, columns * 16 - frame.width)), "edge"),
                )
            if index > 80:
                return


def over_cells(values):
    rows, columns = (side // 16 for side in values.shape)
    return values.reshape(rows, 16, columns, 16).sum((1, 3))


def errors_of(picture):
    """Squared error of each cell at LODs 0 to 4, from box means: float32[5, rows, columns]."""
    found = [np.zeros_like(over_cells(picture))]
    for lod in (1, 2, 3, 4):
        side = 1 << lod
        rows, columns = picture.shape[0] // side, picture.shape[1] // side
        means = picture.reshape(rows, side, columns, side).mean((1, 3)).repeat(side, 0).repeat(side, 1)
        found.append(over_cells((picture - means) ** 2))
    return np.array(found, np.float32)


def planted(grid, seed):
    """One to four rectangles that are asked for, of up to 14 cells a side: float32[grid]."""
    random, participation = np.random.default_rng(seed), np.zeros(grid, np.float32)
    for _ in range(random.integers(1, 5)):
        row, column = random.integers(0, grid[0]), random.integers(0, grid[1])
        participation[row : row + random.integers(1, 15), column : column + random.integers(1, 15)] = 1
    return participation


def lods(geometry, budget, errors, participation=None):
    """The LOD at which each cell is shown, with and without a query."""
    weight, left = geometry.inside.astype(np.float32), tuple(errors[1:])
    if participation is not None:
        weight = weight * error_weight(participation)
        left = errors_with_prior(left, left[0], hidden_error(participation, weight), participation)
    nothing = np.zeros(geometry.grid, np.float32)
    tokens = RateDistortion(64.0).allocate(Problem(geometry, budget, weight, left, errors[1:], None, {}, nothing))
    shown = np.full(geometry.grid, 4, np.uint8)  # nodes that lie wholly beyond the picture get none
    for lod, row, column in zip(*(values.tolist() for values in tokens), strict=True):
        shown[row << lod : (row + 1) << lod, column << lod : (column + 1) << lod] = lod
    return shown


@pytest.mark.slow
@pytest.mark.parametrize("clip", ["pedestrians", "bunny", "tree"])
def test_a_query_never_lowers_what_is_seen_of_the_thing_asked_for(samples, clip):
    """The squared error inside the area is at most that without a query, at the same budget."""
    for geometry, picture in pictures(samples / f"{clip}.mp4"):
        errors = errors_of(picture)
        for budget in BUDGETS:
            plain = lods(geometry, budget, errors)
            before = np.take_along_axis(errors, plain[None].astype(int), 0)[0]
            for seed in AREAS:
                participation = planted(geometry.grid, seed) * geometry.inside
                asked = lods(geometry, budget, errors, participation)
                after = np.take_along_axis(errors, asked[None].astype(int), 0)[0]
                assert (after * participation).sum() <= (before * participation).sum() * 1.0001  # sums of float32


@pytest.mark.parametrize("clip", ["pedestrians", "tree"])
def test_all_that_is_asked_for_reaches_lod_2_before_any_of_it_reaches_lod_0(samples, clip):
    """All nodes of LOD 2 that are asked for as a whole; rims that lie in other nodes come a little later."""
    for geometry, picture in pictures(samples / f"{clip}.mp4"):
        errors = errors_of(picture)
        rows, columns = geometry.grid
        for budget in BUDGETS:
            for seed in AREAS:
                participation = planted(geometry.grid, seed) * geometry.inside
                whole = np.zeros(geometry.grid, bool)
                nodes = participation[: rows // 4 * 4, : columns // 4 * 4].reshape(rows // 4, 4, columns // 4, 4)
                whole[: rows // 4 * 4, : columns // 4 * 4] = nodes.min((1, 3)).repeat(4, 0).repeat(4, 1)
                shown = lods(geometry, budget, errors, participation)[whole]
                assert not ((shown == 0).any() and (shown > 2).any())


def test_the_budget_goes_further_down_the_more_there_is_of_it():
    """Two plain things of 8x8 cells each: both at LOD 2, then both at LOD 1, then both at LOD 0; each has its share."""
    geometry = Geometry(1024, 512)
    participation = np.zeros(geometry.grid, np.float32)
    participation[4:12, 4:12] = participation[20:28, 44:52] = 1
    errors = np.zeros((5, *geometry.grid), np.float32)
    needed = {2: 4, 1: 16, 0: 64}  # tokens for each thing
    for lod, each in needed.items():
        shown = lods(geometry, 2 * each + 40, errors, participation)  # 40: what is around them, at LODs 4 to 2
        for thing in (shown[4:12, 4:12], shown[20:28, 44:52]):
            assert thing.max() <= lod
            assert thing.min() >= lod - 1
