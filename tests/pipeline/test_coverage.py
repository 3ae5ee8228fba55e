"""Frame memory covers the whole picture at any size and budget, with tokens as coarse as that asks for."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foveate.pipeline.cascade.coverage import Coverage, cells_under, spread_tokens
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.cpu.cascade import cascade
from foveate.pipeline.cpu.pyramid import pyramid
from foveate.pipeline.cpu.reader import Reader
from foveate.pipeline.cpu.sampling import patches
from foveate.pipeline.cpu.upload import upload
from foveate.pipeline.cpu.upper import UpperLevels, halved
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings


def noise(width, height, seed=0, count=1):
    """Frames with detail at all scales."""
    rng = np.random.default_rng(seed)
    small = -(-height // 2), -(-width // 2)
    for index in range(count):
        coarse = rng.integers(0, 200, (height // 64 + 1, width // 64 + 1), dtype=np.uint8)
        luma = coarse.repeat(64, 0).repeat(64, 1)[:height, :width] + rng.integers(0, 40, (height, width), np.uint8)
        chroma = tuple(rng.integers(90, 166, small, dtype=np.uint8) for _ in range(2))
        yield Frame(index, index / 25, np.ascontiguousarray(luma, np.uint8), chroma, Colour())


def selections(width, height, count=1, feedback=None, **options):
    """What the CPU engine selects from noise."""
    chosen = Settings(**options)
    frames = noise(width, height, count=count)
    plan = plan_stream(chosen)
    states = pyramid(upload(frames, chosen.change), plan, 2)
    for step in cascade(states, plan, feedback or Feedback()):
        yield step.selection


def holes_and_overlaps(selection):
    """Cells of the picture without a token, and with more than one that differ; all tokens must reach into it."""
    count = np.zeros((math.ceil(selection.height / 16), math.ceil(selection.width / 16)), int)
    for x, y, lod in set(zip(selection.x.tolist(), selection.y.tolist(), selection.lod.tolist(), strict=True)):
        top, left, side = (y - (8 << lod)) // 16, (x - (8 << lod)) // 16, 1 << lod
        assert 0 <= top < count.shape[0]
        assert 0 <= left < count.shape[1]
        assert (top % side, left % side) == (0, 0)
        count[top : top + side, left : left + side] += 1
    return np.count_nonzero(count == 0), np.count_nonzero(count > 1)


FIXED = [  # when no token was coarser than LOD 4, many cells of the first four had none
    (7680, 4320, 273, 5),
    (6000, 3400, 273, 5),
    (3840, 2160, 100, 5),
    (3840, 2160, 1, 8),
    (1920, 1080, 39, 5),
    (20000, 2, 1, 11),
    (2, 20000, 3, 10),
    (4097, 33, 4, 7),
    (8192, 8192, 1, 9),
    (1, 1, 1, 0),
]


@pytest.mark.parametrize("strategy", ["rate_distortion", "foveated"])
@pytest.mark.parametrize("memory", ["frame", "stream"])
@pytest.mark.parametrize(("width", "height", "budget", "top"), FIXED)
def test_the_whole_picture_is_covered(width, height, budget, top, memory, strategy):
    """The first frame of stream memory as well: nothing is held yet."""
    allocation = {"memory": memory, "strategy": strategy}
    (selection,) = selections(width, height, budget=budget, patches=True, allocation=allocation)
    assert len(selection) <= budget
    assert holes_and_overlaps(selection) == (0, 0)
    assert selection.lod.max(initial=0) <= top  # none coarser than needed
    if budget == 1:
        assert selection.lod.tolist() == [top]
    assert selection.patches.shape == (len(selection), 16, 16, 3)


sides = st.one_of(st.integers(1, 1200), st.integers(1, 40))


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(sides, sides),
    st.integers(1, 300),
    st.sampled_from(["frame", "stream"]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["rate_distortion", "foveated"]),
)
@example((768, 576), 272, "frame", 2, "rate_distortion")  # six tokens lay outside
@example((1200, 17), 1, "frame", 1, "rate_distortion")
@example((1200, 17), 4, "frame", 2, "foveated")
@example((1, 1), 9, "stream", 3, "rate_distortion")
@example((768, 769), 144, "frame", 3, "rate_distortion")  # one row of cells in the last row of groups
@example((1200, 17), 9, "frame", 3, "foveated")
def test_coverage_as_a_property(size, budget, memory, merge, strategy):
    """Every cell has one token, none lies outside, groups are whole, in order, and of one LOD."""
    budget = max(budget, merge**2)
    allocation = {"memory": memory, "merge": merge, "strategy": strategy}
    (selection,) = selections(*size, budget=budget, allocation=allocation)
    assert 0 < len(selection) <= budget
    assert holes_and_overlaps(selection) == (0, 0)
    groups = list(zip(selection.lod.tolist(), (selection.y // 16).tolist(), (selection.x // 16).tolist(), strict=True))
    keys = []
    for first in range(0, len(groups), merge**2):
        lod, top, left = groups[first][0], groups[first][1] >> groups[first][0], groups[first][2] >> groups[first][0]
        keys.append((-lod, top, left))
        assert (top % merge, left % merge) == (0, 0)
        last = [(side - 1) // (16 << lod) for side in reversed(size)]
        expected = [
            (lod, min(top + down, last[0]), min(left + across, last[1]))
            for down, across in itertools.product(range(merge), repeat=2)
        ]
        assert [(lod, row >> lod, column >> lod) for lod, row, column in groups[first : first + merge**2]] == expected
    assert keys == sorted(set(keys))


def test_another_budget_mid_stream_makes_tokens_coarser_and_finer_again():
    feedback, budgets = Feedback(), [273, 6, 1, 40]
    for budget, selection in zip(budgets, selections(1920, 1080, 4, feedback), strict=True):
        assert len(selection) <= budget
        assert holes_and_overlaps(selection) == (0, 0)
        if selection.index < 3:
            feedback.set_budget(budgets[selection.index + 1])


def test_a_query_keeps_the_picture_covered_by_coarse_tokens():

    chosen = Settings(budget=20, query=("dark",), allocation={"memory": "stream"})
    plan = plan_stream(chosen)
    states = pyramid(upload(noise(2000, 1500, count=3), chosen.change), plan, 2)
    first, *later = (step.selection for step in cascade(states, plan, Feedback()))
    assert holes_and_overlaps(first) == (0, 0)
    assert all(len(selection) <= 20 for selection in later)


def enlarged(plane, factor, height, width):
    """Bilinear with aligned sample centres; the edge is repeated: float64[height, width]."""
    for axis, length in ((0, height), (1, width)):
        at = (np.arange(length) + 0.5) / factor - 0.5
        low = np.floor(at).astype(int)
        share = (at - low)[:, None] if axis == 0 else at - low
        near, far = (np.take(plane, np.clip(low + step, 0, plane.shape[axis] - 1), axis) for step in (0, 1))
        plane = near * (1 - share) + far * share
    return plane


def odd_grid(rows=6, columns=14, seed=1):
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(0, 256, (rows, columns)).astype(np.float32) for _ in range(3))


def test_upper_samples_are_means_of_four_with_the_last_row_and_column_repeated():
    assert halved(np.array([[1, 3, 8], [5, 7, 2], [4, 4, 6]], np.float32)).tolist() == [[4.0, 5.0], [4.0, 6.0]]
    cells = odd_grid()
    upper = UpperLevels(cells, 7)
    assert [upper.planes(level)[0].shape for level in (4, 5, 6, 7)] == [(6, 14), (3, 7), (2, 4), (1, 2)]
    assert upper.planes(6)[0][0, 0] == cells[0][:4, :4].mean()
    assert upper.planes(6)[1][1, 3] == cells[1][4:6, 12:14].mean()  # one of level 5, four times


def test_the_error_of_an_upper_level_adds_what_its_enlargement_hides_of_the_level_below():
    cells, grid = odd_grid(), (6, 14)
    below = tuple(np.full(grid, 1000.0 * level, np.float32) for level in (1, 2, 3, 4))
    errors = UpperLevels(cells, 6).errors(below)
    assert len(errors) == 6
    assert errors[:4] == below
    row, column = 5, 9
    totals = [4000.0, 4000.0]
    for plane, weight in zip(cells, (1, 0.25, 0.25), strict=True):
        five = plane.reshape(3, 2, 7, 2).mean(axis=(1, 3))
        six = np.pad(five, ((0, 1), (0, 1)), mode="edge").reshape(2, 2, 4, 2).mean(axis=(1, 3))
        first = 256 * weight * (plane - enlarged(five, 2, 6, 14))[row, column] ** 2
        second = 256 * weight * (five - enlarged(six, 2, 3, 7))[row // 2, column // 2] ** 2
        totals = [totals[0] + first, totals[1] + first + second]
    assert [error[row, column] for error in errors[4:]] == pytest.approx(totals, rel=1e-6)


@pytest.mark.parametrize("subsampled", [True, False])
def test_a_coarse_token_shows_the_reader_its_level_enlarged(subsampled):
    from foveate.pipeline.cpu.levels import Levels

    geometry = Geometry(700, 300)
    rng = np.random.default_rng(2)
    small = (150, 350) if subsampled else (300, 700)
    planes = tuple(rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((300, 700), small, small))
    levels, reader = Levels(geometry, subsampled), Reader(geometry, subsampled)
    levels.update(planes, np.ones(geometry.tiles, np.bool_))
    upper = UpperLevels(tuple(np.array(plane.level(4)) for plane in levels.planes), 6)
    token = Tokens(np.array([5], np.uint8), np.array([0], np.int32), np.array([1], np.int32))
    reader.paint(levels, upper, token)
    for samples, plane, kept in zip(upper.planes(5), reader.planes, levels.planes, strict=True):
        factor = 32 >> kept.base
        height, width = kept.pixels.shape
        true = enlarged(samples.astype(float), factor, height, width)
        left = 16 * factor
        # Rounded to whole grey values: half a step, and float32's last bits.
        assert np.abs(plane[:height, left:width] - true[:, left:]).max() <= 0.5 + 1e-3
        assert not plane[:height, :left].any()
    cells = np.zeros(geometry.grid, bool)
    cells[:, 32:] = True
    assert (reader.seen == cells).all()
    assert set(reader.lod[cells].tolist()) == {5}
    (patch,) = patches(levels, upper, token, Colour())
    repeated = np.pad(upper.planes(5)[0], ((0, 16), (0, 16)), mode="edge")[:16, 16:32]
    assert np.corrcoef(patch.astype(float).mean(axis=2).ravel(), repeated.ravel())[0, 1] > 0.9


def test_means_least_values_and_spreading_under_coarse_and_repeated_tokens():
    geometry = Geometry(700, 300)  # 19 x 44 cells inside of 20 x 44
    maps = np.random.default_rng(3).random((2, *geometry.grid)).astype(np.float32)
    whole = (np.array([5, 5, 6, 0, 0], np.uint8), np.array([0, 0, 0, 18, 18], np.int32), np.array([0, 1, 0, 9, 9]))
    tokens = Tokens(whole[0], whole[1], whole[2].astype(np.int32))
    tokens = Tokens(*(values[[2, 0, 1, 3, 4]] for values in tokens))  # coarse to fine
    coverage = Coverage(tokens, geometry)
    under = [np.s_[:19, :44], np.s_[:19, :32], np.s_[:19, 32:44], np.s_[18:19, 9:10], np.s_[18:19, 9:10]]
    means = [[plane[at].mean(dtype=np.float64) for at in under] for plane in maps]
    assert coverage.means(maps) == pytest.approx(np.array(means), rel=1e-5)
    ages = (maps * 1000).astype(np.int32)
    least = [[plane[at].min() for at in under] for plane in ages]
    assert coverage.minima(ages, 10**6).tolist() == least
    spread = spread_tokens(tokens, np.array([0.5, 0.25, 0.75, 0.125, 1.0], np.float32), geometry)
    assert (spread[0, 0], spread[0, 40], spread[18, 9]) == (0.25, 0.75, 1.0)
    assert cells_under(5, tokens.row[2:3], tokens.column[2:3], geometry).sum() == 20 * 12


def test_tokens_that_repeat_each_other_do_not_count_twice():
    geometry = Geometry(32, 16)  # 1 x 2 cells
    left = np.array([0, 0, 0, 0], np.int32)
    assert not Coverage(Tokens(left[:2].astype(np.uint8), left[:2], left[:2]), geometry).everywhere
    both = Tokens(left.astype(np.uint8), left, np.array([0, 1, 0, 1], np.int32))
    assert Coverage(both, geometry).everywhere
