"""The volume is read between samples and frames; its measures tell light from motion; the score counts by hand."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.cases.temporal_volumes import (
    DEPTH,
    METHODS,
    Volume,
    light,
    method_maps,
    path,
    scores,
    truth_of,
    without_light,
    without_still,
)
from foveate.bench.clips.encoding import LOSSLESS, encode, grey_frame
from foveate.bench.scenes.flicker import LAMPS, lamps
from foveate.bench.scenes.light import SCENES, exposure
from foveate.bench.scenes.moving import HEIGHT, WIDTH, Box, Moment
from foveate.pipeline.flow import Flow

GRAIN = np.random.default_rng(4).uniform(50, 200, (40, 400)).astype(np.float32)


def volume_of(frames):
    volume = Volume()
    for frame in frames:
        volume.push(np.ascontiguousarray(frame, np.float32))
    return volume


def test_it_is_read_trilinearly() -> None:
    """Value x + 10 y at the newest frame, 100 more a frame earlier."""
    rows, columns = np.indices((4, 5), dtype=np.float32)
    volume = volume_of([columns + 10 * rows + 100, columns + 10 * rows])
    read = volume.sample(np.float32([[1.5, 9]]), np.float32([[2.25, 0]]), 0.5)
    np.testing.assert_allclose(read, [[1.5 + 22.5 + 50, 4 + 50]], rtol=1e-6)


def test_it_keeps_eight_frames() -> None:
    volume = volume_of([np.full((2, 2), value) for value in range(12)])
    assert len(volume) == DEPTH
    assert [float(frame[0, 0]) for frame in volume.earlier()] == [10, 9, 8, 7, 6, 5, 4]
    assert len(volume.earlier(2)) == 1


def test_light_explains_gain_and_offset_but_not_a_shift() -> None:
    flickering = volume_of([GRAIN[:, :80] * gain + offset for gain, offset in ((1, 0), (1.1, 3), (0.9, -2))])
    changes, left = light(flickering)
    assert changes.mean() > 100
    assert left.max() < 0.01 * changes.mean()
    shifted = volume_of([GRAIN[:, shift : shift + 80] for shift in (0, 5, 10)])
    changes, left = light(shifted)
    assert left.mean() > 0.4 * changes.mean()


def test_the_path_of_a_shift_is_constant_and_that_of_light_is_not() -> None:
    """The content of the newest frame lay 4 samples, a cell, further right one frame before."""
    grid = (10, 20)
    flow = Flow(np.full(grid, -1, np.float32), np.zeros(grid, np.float32), np.ones(grid, np.float32))
    place, along = path(volume_of([GRAIN[:, 100 + shift : 180 + shift] for shift in (8, 4, 0)]), flow)
    inner = np.s_[:, 20:]
    assert along[inner].max() < 1e-3 * place[inner].min()
    still = Flow(*(np.zeros(grid, np.float32) for _ in range(3)))
    place, along = path(volume_of([GRAIN[:, :80], GRAIN[:, :80] * 1.1]), still)
    np.testing.assert_allclose(place, along)


def test_gates() -> None:
    moving = np.array([[1, 1, 1, 0.5]], np.float32)
    changes, left = np.array([[100, 100, 0.5, 0]], np.float32), np.array([[1, 60, 0, 0]], np.float32)
    np.testing.assert_allclose(without_light(moving, changes, left), [[0, 1, 1, 0.5]])
    np.testing.assert_allclose(without_still(moving, changes, left), [[1, 0, 1, 0.5]])


def test_scores_count_cells() -> None:
    """One thing on 3x3 cells and a half, at rest; the map has 2x3 of it, and 4 cells elsewhere."""
    moment = Moment(np.zeros((HEIGHT, WIDTH), np.uint8), (Box(0, 160, 160, 216, 208),))
    inside, touched = truth_of(moment, (24, 40))
    assert (inside.sum(), touched.sum()) == (12, 12)
    found = np.zeros((24, 40), np.float32)
    found[10:12, 10:13] = 1
    found[2:4, 2:4] = 0.5
    figures = scores([moment] * 22, [found] * 22)
    assert figures["precision"] == pytest.approx(6 / 10)
    assert figures["recall"] == pytest.approx(6 / 12)
    assert figures["samples"] == {"right, said, true": [[6, 10, 12]] * 2}


def test_lamps_flicker_by_their_share_and_nothing_passes_them() -> None:
    moments = list(lamps(30, 0.1, noise=0.0))
    left, top, right, bottom = LAMPS[1]
    means = [moment.luma[top:bottom, left:right].mean() for moment in moments]
    middle = (max(means) + min(means)) / 2
    assert (max(means) - middle) / middle == pytest.approx(0.1 * np.sin(2 * np.pi / 5), abs=0.01)
    for left, top, right, bottom in LAMPS:
        cells = np.s_[top // 16 : bottom // 16, left // 16 : right // 16]
        assert not any(truth_of(moment, (24, 40))[1][cells].any() for moment in moments)


@pytest.mark.parametrize("name", SCENES)
def test_boxes_are_where_things_are_drawn(name: str) -> None:
    """All three or four of them, inside the picture."""
    for moment in SCENES[name](frames=3, seed=1):
        assert moment.luma.shape == (HEIGHT, WIDTH)
        assert 3 <= len(moment.boxes) <= 4
        for box in moment.boxes:
            assert 0 <= box.left < box.right <= WIDTH
            assert 0 <= box.top < box.bottom <= HEIGHT


def test_the_exposure_opens_and_closes() -> None:
    gains = [exposure(index) for index in range(96)]
    assert gains[:48] == gains[48:]
    assert max(gains) == pytest.approx(1.04**12)
    assert all(abs(np.log(after / before)) < 0.04 for before, after in pairwise(gains))


def test_what_the_product_leaves_out_of_lamps(tmp_path: Path) -> None:
    """Lamps move while light counts, and do not by default; the volume of eight frames takes most of them out too."""
    frames = 30
    clip = tmp_path / "lamps.mp4"
    encode(clip, (grey_frame(moment.luma) for moment in lamps(frames, 0.12)), Fraction(25), LOSSLESS)
    maps, costs = method_maps(clip, frames)
    assert set(maps) == set(costs) == set(METHODS)
    left, top, right, bottom = (edge // 16 for edge in LAMPS[0])
    shares = {way: np.mean([each[top:bottom, left:right] >= 0.5 for each in maps[way][20:]]) for way in METHODS}
    assert shares["light counts"] > 0.5
    assert shares["moving"] < 0.05
    assert shares["8 frames"] < 0.2
