"""What moves: against the background of each cell, with whole regions, and where the camera itself moves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.pipeline.attributes.background import LEARNING_FRAMES, STEP
from foveate.pipeline.attributes.moving import Motion
from foveate.pipeline.attributes.regions import regions
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.native.background import BackgroundState, update_background
from foveate.pipeline.query.encoder import EmbedderInput
from foveate.pipeline.spec import light


def cells_of(values, geometry):
    """[3, h, w] at level 2 -> [rows, columns, 16 samples, 3]."""
    rows, columns = geometry.grid
    return values.reshape(3, rows, 4, columns, 4).transpose(1, 3, 2, 4, 0).reshape(rows, columns, 16, 3)


def means_over(values, top, left, side):
    """Means of samples over ``side`` x ``side`` cells, ``top`` and ``left`` of each cell, as far as they are inside."""
    rows, columns = (length // 4 for length in values.shape)
    sums = np.pad(values.reshape(rows, 4, columns, 4).sum((1, 3)), 2)
    counts = np.pad(np.full((rows, columns), 16), 2)
    shifts = [(2 + top + y, 2 + left + x) for y in range(side) for x in range(side)]
    total, count = (sum(each[y : y + rows, x : x + columns] for y, x in shifts) for each in (sums, counts))
    return total / count


def light_over(now, before, *window, plain):
    """Whether a gain and an offset turn either luma into the other over a window; how far it is from the limits."""
    a, b, aa, bb, ab = (
        means_over(each.astype(float), *window) for each in (now, before, now**2, before**2, now * before)
    )
    both, change = np.maximum(ab - a * b, 0), aa - 2 * ab + bb
    one, other = aa - a * a, bb - b * b
    rests = [
        light.UNEXPLAINED * np.minimum(change, v) + light.LIGHT_NOISE - (v - both**2 / (w + light.LIGHT_NOISE))
        for v, w in ((one, other), (other, one))
    ]
    ratio = light.PLAIN_GAIN - np.maximum(a, b) / np.maximum(np.minimum(a, b), 1e-9)
    texture = np.minimum(one, other) - light.PLAIN * light.LIGHT_NOISE
    margin = np.min(np.abs([*rests, ratio, texture]), axis=0)
    return (np.min(rests, axis=0) >= 0) & ((texture > 0) | (plain & (ratio >= 0))), margin


def light_explains(now, before):
    """bool[grid]: over the 3x3 cells around each, or 2x2 with it; second: where float32 may say otherwise."""
    found, margin = light_over(now, before, -1, -1, 3, plain=True)
    for top, left in ((-1, -1), (-1, 0), (0, -1), (0, 0)):
        lit, other = light_over(now, before, top, left, 2, plain=False)
        found, margin = found | lit, np.minimum(margin, other)
    return found, margin < 1e-2


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 100) | st.just(1200), st.integers(1, 100))
def test_the_kernel_is_its_plain_reference(seed, width, height):
    """On scenes that come and go, in part, and whose light changes."""
    random, geometry = np.random.default_rng(seed), Geometry(width, height)
    memory = BackgroundState.of(geometry)
    last = np.zeros((3, *geometry.level(2)), int)
    background, known, last_change = last.copy(), np.zeros(geometry.grid, bool), np.zeros(geometry.grid, int)
    scenes = random.integers(0, 256, (2, 3, *geometry.level(2)))
    for frame in np.cumsum(random.integers(1, 5, 12)).tolist():
        picture = scenes[random.integers(2)].copy()
        cell = random.integers(0, 4, geometry.grid).repeat(4, 0).repeat(4, 1)
        picture = np.where(cell == 0, picture + random.integers(-STEP, STEP + 1, picture.shape), scenes[0]).clip(0, 255)
        picture[0] = np.rint(picture[0] * random.choice([1, 0.5, 0.8]) + random.integers(0, 30))
        picture = picture.clip(0, 255)
        written = random.random(geometry.tiles) < 0.7
        update_background([plane.astype(np.float32) for plane in picture], frame, geometry, written, memory, 3, STEP)

        mask = written.repeat(2, 0).repeat(2, 1)
        samples = mask.repeat(4, 0).repeat(4, 1)
        rests = mask & (frame - last_change > 3)
        background = np.where((rests | ~known).repeat(4, 0).repeat(4, 1), last, background)
        known |= rests
        before, last = last, np.where(samples, picture, last)
        maps, unsure = [], np.zeros(geometry.grid, bool)
        for other in (before, np.where(known.repeat(4, 0).repeat(4, 1), background, np.where(samples, before, last))):
            apart = np.abs(cells_of(last - other, geometry)) > STEP
            lit, close = light_explains(last[0], other[0])
            lit &= ~apart[..., 1:].any((-1, -2))
            maps.append(np.where(lit, 0, apart.any(-1).mean(-1)))
            unsure |= close
        sure = mask & ~unsure
        np.testing.assert_allclose(memory.difference[sure], maps[0][sure])
        np.testing.assert_allclose(memory.foreground[sure], np.where(known, maps[1], -1)[sure])
        np.testing.assert_array_equal(memory.known, known)
        last_change = np.where(mask & (np.where(unsure, memory.difference, maps[0]) > 0), frame, last_change)
        np.testing.assert_array_equal(memory.last_change, last_change)


GEOMETRY = Geometry(640, 320)


def view(difference, foreground, changed=None, flow=None, keyframe=None):
    grid = {"frame_difference": np.asarray(difference, np.float32), "foreground": np.asarray(foreground, np.float32)}
    changed = grid["frame_difference"] > 0 if changed is None else changed
    return EmbedderInput(None, GEOMETRY, keyframe, changed, flow, changed, grid)


def moving(motion, seen, shares=()):
    """What moves in the next frame, whose colours have these shares."""
    motion.update(seen)
    return motion.moving(lambda: regions(shares, GEOMETRY))


def maps(difference=0, foreground=0):
    return [np.full(GEOMETRY.grid, values, np.float32) for values in (difference, foreground)]


def test_what_stops_moves_no_longer_and_what_it_uncovers_never_did():
    motion = Motion(GEOMETRY)
    difference, foreground = maps()
    difference[4:10, 4:8], foreground[4:10, 4:8] = 0.5, 1  # a thing
    difference[4:10, 3], foreground[4:10, 3] = 0.5, 0  # uncovered by it
    found = moving(motion, view(difference, foreground))
    assert found[4:10, 4:8].min() == 1
    assert found[4:10, 3].max() == 0
    difference[:] = 0
    later = [moving(motion, view(difference, foreground)) for _ in range(5)]
    assert later[1][5, 5] == 1
    assert later[-1].max() == 0


def test_a_speck_is_no_thing():
    difference, foreground = maps()
    difference[5, 5], foreground[5, 5] = 0.4, 0.4
    assert moving(Motion(GEOMETRY), view(difference, foreground)).max() == 0


@pytest.mark.parametrize(("front", "whole"), [(14, True), (9, False)])
def test_a_plain_thing_moves_as_a_whole_when_its_front_and_back_do(front, whole):
    shares = np.zeros((1, *GEOMETRY.grid), np.float32)
    shares[0, 4:8, 5:15] = 1
    difference, foreground = maps(foreground=-1)
    difference[4:8, 5] = difference[4:8, front] = 0.25
    found = moving(Motion(GEOMETRY), view(difference, foreground), shares)
    assert (found[4:8, 5:15].min() == 1) == whole
    assert found[0].max() == 0


@pytest.mark.parametrize(("waits", "elsewhere", "whole"), [(1, True, True), (60, True, False), (1, False, False)])
def test_what_came_lately_moves_with_its_front_but_not_what_has_stood_for_long(waits, elsewhere, whole):
    """Nor where all has rested in between: a still picture is not looked at, however long it lasts."""
    shares = np.zeros((1, *GEOMETRY.grid), np.float32)
    shares[0, 4:8, 5:15] = 1
    motion = Motion(GEOMETRY)
    difference, foreground = maps(foreground=0)
    difference[4:8, 5:15] = foreground[4:8, 5:15] = 1  # a plain thing comes, and hides the background
    moving(motion, view(difference, foreground), shares)
    difference, foreground = maps(foreground=0)  # it rests in the cells inside it
    difference[-1, -1] = 0.1 if elsewhere else 0
    for _ in range(waits):
        assert moving(motion, view(difference, foreground), shares).max() == 0
    difference[4:8, 14], foreground[4:8, 14] = 0.3, 1
    found = moving(motion, view(difference, foreground), shares)
    assert found[4:8, 14].min() == 1
    assert (found[4:8, 5:15].min() == 1) == whole


def test_a_region_of_more_than_a_tenth_of_the_picture_moves_only_where_it_is_seen_to():
    shares = np.zeros((1, *GEOMETRY.grid), np.float32)
    shares[0, 4:12, 2:14] = 1  # 96 of 800 cells
    difference, foreground = maps(foreground=-1)
    difference[4:12, 2] = difference[4:12, 13] = 0.25
    found = moving(Motion(GEOMETRY), view(difference, foreground), shares)
    np.testing.assert_array_equal(found == 1, difference > 0)


def test_of_a_panning_camera_only_what_moves_another_way():
    dx, still = np.full(GEOMETRY.grid, 0.5, np.float32), np.zeros(GEOMETRY.grid, np.float32)
    dx[6:9, 6:9] = -0.5
    everywhere = np.ones(GEOMETRY.grid, np.bool_)
    flow = Flow(dx, still, np.ones(GEOMETRY.grid, np.float32))
    found = moving(Motion(GEOMETRY), view(*maps(1, -1), everywhere, flow))
    np.testing.assert_array_equal(found, dx == -0.5)


def test_a_swaying_camera_moves_nothing_and_resets_the_background():
    motion, everywhere = Motion(GEOMETRY), np.ones(GEOMETRY.grid, np.bool_)
    sway = np.full(GEOMETRY.grid, 0.05, np.float32)
    flow = Flow(sway, np.zeros_like(sway), np.ones_like(sway))
    difference, foreground = maps(foreground=0)
    difference[::3], foreground[::3] = 0.5, 1  # edges: a third of the cells, which is no pan
    assert moving(motion, view(difference, foreground, everywhere, flow)).max() == 0
    difference[:], difference[4:8, 4:8] = 0, 0.5
    now = moving(motion, view(difference, foreground))
    assert now[4:8, 4:8].min() == 1  # by what changes
    assert now[::3, 10:].max() == 0  # not by the background before


def test_a_new_scene_begins_at_rest():
    motion = Motion(GEOMETRY)
    difference, foreground = maps(foreground=-1)
    difference[4:8, 4:8] = 1
    assert moving(motion, view(difference, foreground)).max() == 1
    assert moving(motion, view(*maps(1, -1), keyframe="cut")).max() == 0
    assert moving(motion, view(*maps())).max() == 0


def test_a_thing_that_waits_longer_than_others_rests():
    geometry, memory = Geometry(32, 32), BackgroundState.of(Geometry(32, 32))
    every = np.ones((1, 1), np.bool_)
    show = [np.full(geometry.level(2), value, np.float32) for value in (100, 200)]
    for frame, picture in [(0, 0), (1 + LEARNING_FRAMES, 1), (2 + LEARNING_FRAMES, 0), (4 + 2 * LEARNING_FRAMES, 1)]:
        update_background([show[picture]] * 3, frame, geometry, every, memory, LEARNING_FRAMES, STEP)
    np.testing.assert_array_equal(memory.foreground, np.ones((2, 2)))  # not the first, but the background learned since
