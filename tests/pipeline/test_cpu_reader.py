"""The reader's picture: painted as the levels enlarged bilinearly, compared exactly."""

import cv2
import numpy as np
import pytest

from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.cascade.rate_distortion import UNSEEN
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.cpu.reader import Reader
from foveate.pipeline.cpu.upper import UpperLevels
from foveate.pipeline.geometry import Geometry

NONE = UpperLevels((np.zeros((2, 2), np.float32),) * 3, 4)  # where no token is coarser than LOD 4


def enlarged(plane, factor):
    """Bilinear with aligned sample centres, one axis after the other; the edge is repeated."""
    for axis in (0, 1):
        count = plane.shape[axis]
        at = (np.arange(count * factor) + 0.5) / factor - 0.5
        low = np.floor(at).astype(int)
        share = (at - low)[:, None] if axis == 0 else at - low
        near, far = (np.take(plane, np.clip(low + step, 0, count - 1), axis) for step in (0, 1))
        plane = near * (1 - share) + far * share
    return plane


def tokens(*places):
    lod, row, column = (np.array(values) for values in zip(*places, strict=True))
    return Tokens(lod.astype(np.uint8), row.astype(np.int32), column.astype(np.int32))


@pytest.fixture(params=[True, False], ids=["4:2:0", "4:4:4"])
def scene(request):
    geometry = Geometry(300, 200)
    rng = np.random.default_rng(0)
    small = (100, 150) if request.param else (200, 300)
    planes = [rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((200, 300), small, small)]
    levels = Levels(geometry, request.param)
    levels.update(tuple(planes), np.ones(geometry.tiles, np.bool_))
    return geometry, levels, Reader(geometry, request.param)


@pytest.mark.parametrize("lod", [0, 1, 2, 3, 4])
def test_a_token_paints_its_level_enlarged_and_nothing_else(scene, lod):
    geometry, levels, reader = scene
    row, column = {0: (3, 5), 1: (2, 4), 2: (1, 1), 3: (0, 1), 4: (0, 1)}[lod]
    reader.paint(levels, NONE, tokens((lod, row, column)))
    for pyramid, plane in zip(levels.planes, reader.planes, strict=True):
        side = (16 << lod) >> pyramid.base
        top, left = row * side, column * side
        source = np.asarray(pyramid.level(lod), float)
        true = enlarged(source, 1 << max(lod - pyramid.base, 0))
        held = pyramid.pixels.shape
        rows, columns = min(top + side, held[0]), min(left + side, held[1])
        seen = plane[top:rows, left:columns].astype(float)
        # Rounded to whole grey values: half a step, and float32's last bits.
        assert np.abs(seen - true[top:rows, left:columns]).max() <= 0.5 + 1e-3
        outside = plane.copy()
        outside[top : top + side, left : left + side] = 0
        assert not outside.any()
    cells = np.zeros(geometry.grid, bool)
    cells[row << lod : (row + 1) << lod, column << lod : (column + 1) << lod] = True
    assert (reader.seen == cells).all()


@pytest.mark.parametrize("lod", [1, 2, 3, 4, 5, 6])
def test_a_token_is_enlarged_bicubically_where_the_reader_does_so(lod):
    """As OpenCV enlarges the whole level, within half a grey value and float32's last bits."""
    geometry, rng = Geometry(1500, 1100), np.random.default_rng(1)
    levels = Levels(geometry, True)
    planes = tuple(rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((1100, 1500), (550, 750), (550, 750)))
    levels.update(planes, np.ones(geometry.tiles, np.bool_))
    upper = UpperLevels(tuple(pyramid.level(4) for pyramid in levels.planes), 6)
    reader = Reader(geometry, True, "bicubic")
    last = (1100 - 1) // (16 << lod), (1500 - 1) // (16 << lod)
    reader.paint(levels, upper, tokens((lod, 0, 0), (lod, *last)))
    for pyramid, coarsest, plane in zip(levels.planes, upper.planes(max(lod, 4)), reader.planes, strict=True):
        source, factor = (pyramid.level(lod) if lod < 5 else coarsest), 1 << (lod - pyramid.base)
        level = np.asarray(source, np.float32)
        true = level if factor == 1 else cv2.resize(level, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)
        side = 16 * factor
        rows, columns = pyramid.pixels.shape
        for row, column in ((0, 0), last):
            at = np.s_[row * side : min((row + 1) * side, rows), column * side : min((column + 1) * side, columns)]
            assert np.abs(plane[at] - true[at].clip(0, 255)).max() <= 0.5 + 2e-3


def test_the_error_is_the_sum_of_squares_and_unseen_cells_count_as_worst(scene):
    geometry, levels, reader = scene
    nothing = np.zeros(geometry.tiles, np.bool_)
    assert (reader.compare(levels, nothing, nothing) == UNSEEN).all()
    reader.paint(levels, NONE, tokens((2, 0, 0), (0, 8, 8)))
    error = reader.compare(levels, nothing, nothing)
    assert (error[~reader.seen] == UNSEEN).all()
    assert error[8, 8] == 0
    row, column = 2, 3
    total = 0.0
    for pyramid, plane, weight in zip(levels.planes, reader.planes, (1, 0.25, 0.25), strict=True):
        side = 16 >> pyramid.base
        block = np.s_[row * side : (row + 1) * side, column * side : (column + 1) * side]
        squares = (pyramid.pixels[block].astype(float) - plane[block]) ** 2
        total += weight * squares.sum() * 4**pyramid.base
    assert error[row, column] == pytest.approx(total, rel=1e-5)


def test_what_is_written_later_counts_against_the_reader(scene):
    geometry, levels, reader = scene
    everything = tokens(*((0, row, column) for row in range(geometry.grid[0]) for column in range(geometry.grid[1])))
    reader.paint(levels, NONE, everything)
    nothing = np.zeros(geometry.tiles, np.bool_)
    assert (reader.compare(levels, nothing, nothing) == 0).all()
    changed = np.zeros(geometry.tiles, np.bool_)
    changed[1, 2] = True
    chroma = np.full((200 >> levels.cb.base, 300 >> levels.cb.base), 9, np.uint8)
    planes = np.zeros((200, 300), np.uint8), chroma, chroma
    levels.update(planes, changed)
    error = reader.compare(levels, changed, changed)
    assert (error[2:4, 4:6] > 0).all()
    error[2:4, 4:6] = 0
    assert not error.any()
    reader.reset()
    assert (reader.compare(levels, nothing, nothing) == UNSEEN).all()


def test_other_noise_on_a_keyframe_is_no_error_of_the_readers(scene):
    """A keyframe writes all tiles, of which (0, 1) has changed; cells of (2, 3) were painted since the last frame."""
    geometry, levels, reader = scene
    everything = tokens(*((0, row, column) for row in range(geometry.grid[0]) for column in range(geometry.grid[1])))
    reader.paint(levels, NONE, everything)
    nothing = masked(geometry)
    assert (reader.compare(levels, nothing, nothing) == 0).all()
    reader.paint(levels, NONE, tokens((0, 4, 6)))
    planes = [pyramid.pixels.astype(int) for pyramid in levels.planes]
    apart = np.where(planes[0] < 128, 2, -2)
    luma = planes[0] + apart  # squared, 4 at each of 256 pixels: 1,024 a cell
    luma[:16, :16] += apart[:16, :16]  # 16 at each: 4,096
    levels.update((luma[:200, :300].astype(np.uint8), *(_cropped(plane) for plane in levels.planes[1:])), ~nothing)
    error = reader.compare(levels, ~nothing, masked(geometry, (0, 1)), np.float32(1100))
    inside = geometry.inside.copy()
    inside[[12]] = inside[:, [18]] = False  # cells that the picture's edge cuts have fewer pixels of their own
    shown = np.where(error > 0, 1, 0) * inside
    expected = np.zeros_like(shown)
    expected[0, 0] = 1  # more than noise
    expected[:2, 2:4] = 1
    expected[4:6, 6:8] = 1
    np.testing.assert_array_equal(shown, expected)
    assert error[0, 0] == 4096
    assert error[1, 2] == 1024


def _cropped(pyramid):
    return pyramid.pixels[: 200 >> pyramid.base, : 300 >> pyramid.base]


def masked(geometry, *tiles):
    mask = np.zeros(geometry.tiles, np.bool_)
    for tile in tiles:
        mask[tile] = True
    return mask


def test_what_a_token_left_is_known_until_its_cell_changes_or_a_change_beside_it_ends(scene):
    """A token of LOD 2 covers rows and columns 0..3; tile (0, 2) beside it rows 0 and 1 of columns 4 and 5."""
    geometry, levels, reader = scene
    nothing, beside = masked(geometry), masked(geometry, (0, 2))
    guessed = tuple(np.full(geometry.grid, value, np.float32) for value in (1, 2, 3, 4))
    reader.paint(levels, NONE, tokens((2, 0, 0)))
    for before, each in zip(guessed, reader.with_residuals(guessed), strict=True):
        np.testing.assert_array_equal(each, before)  # not compared yet
    error = reader.compare(levels, nothing, nothing).copy()
    assert (error[:4, :4] > 4).all()  # random noise
    finest, *coarser = reader.with_residuals(guessed)
    assert (finest == 1).all()
    for each, guess in zip(coarser, (2, 3, 4), strict=True):
        np.testing.assert_array_equal(each[:4, :4], error[:4, :4])
        assert (each[4:] == guess).all()
        assert (each[:, 4:] == guess).all()

    for _ in range(3):  # as long as it changes, nothing is gained by another look at its rim
        reader.compare(levels, beside, beside)
        assert (reader.with_residuals(guessed)[1][:4, :4] == error[:4, :4]).all()
    reader.compare(levels, nothing, nothing)
    again = reader.with_residuals(guessed)[1]
    assert (again[:3, 3] == 2).all()  # rows 0 and 1 beside it, row 2 at its corner
    assert again[3, 3] == error[3, 3]
    assert (again[:4, :3] == error[:4, :3]).all()

    reader.compare(levels, nothing, masked(geometry, (1, 0)))
    assert (reader.with_residuals(guessed)[1][2:4, :2] == 2).all()


def test_what_a_coarser_token_left_is_known_beside_what_a_finer_one_did(scene):
    geometry, levels, reader = scene
    nothing = masked(geometry)
    errors = []
    for lod in (3, 1):
        reader.paint(levels, NONE, tokens((lod, 0, 0)))
        errors.append(reader.compare(levels, nothing, nothing)[0, 0].item())
    assert errors[0] != errors[1]
    known = [each[0, 0] for each in reader.with_residuals([np.zeros(geometry.grid, np.float32)] * 4)]
    assert known == [errors[1], errors[1], max(errors), max(errors)]


def test_the_reader_remembers_what_a_query_marked_since_it_looked_where_that_changed(scene):
    geometry, levels, reader = scene
    rising = np.linspace(0, 1, geometry.grid[0] * geometry.grid[1], dtype=np.float32).reshape(geometry.grid)
    none, nothing, changed = np.zeros_like(rising), masked(geometry), masked(geometry, (1, 1))
    reader.paint(levels, NONE, tokens((1, 1, 1), (0, 6, 6)), none)
    reader.compare(levels, nothing, nothing)
    assert not reader.peak_participation(rising).any()  # nothing has changed
    reader.compare(levels, changed, changed)
    marked = reader.peak_participation(none)
    assert (marked[2:4, 2:4] == rising[2:4, 2:4]).all()
    assert np.count_nonzero(marked) == 4
    reader.paint(levels, NONE, tokens((0, 2, 2)), none)
    reader.compare(levels, nothing, nothing)
    marked[2, 2] = 0
    assert (reader.peak_participation(none) == marked).all()
    reader.reset()
    assert not reader.peak_participation(none).any()
