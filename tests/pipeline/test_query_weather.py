"""Rain is no motion, and what moves in it still is: generated frames, true as they are drawn."""

from collections.abc import Iterator

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline import open_stream
from foveate.pipeline.attributes.weather import Weather, correlation

HEIGHT, WIDTH, FRAMES, SETTLED = 288, 480, 70, 40
SIDE, TOP, RATE = 64, 112, 2
GRID = (24, 40)


def places(index: int) -> tuple[slice, slice]:
    """Rows and columns of a thing that crosses the picture."""
    left = 32 + RATE * index
    return slice(TOP, TOP + SIDE), slice(left, left + SIDE)


def rainy(drops: int, low: int, high: int) -> Iterator[NDArray[np.uint8]]:
    """A striped thing before still grain of lumas from ``low`` to ``high``, behind drops: uint8[HEIGHT, WIDTH]."""
    random = np.random.default_rng(3)
    coarse = random.uniform(low, high, (HEIGHT // 24, WIDTH // 24)).astype(np.float32)
    ground = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    stripes = 190 + 45 * np.sin(np.arange(SIDE, dtype=np.float32) * 0.5)
    for index in range(FRAMES):
        picture = ground + random.normal(0, 2, ground.shape)
        picture[places(index)] = stripes
        for row, column in random.integers(0, (HEIGHT - 24, WIDTH - 2), (drops, 2)):
            picture[row : row + 24, column : column + 2] += 30
        yield np.clip(np.rint(picture), 0, 255).astype(np.uint8)


def shares(pictures: Iterator[NDArray[np.uint8]]) -> tuple[float, float]:
    """Share of the thing's cells that move, and of the cells that it has not been near."""
    inside, outside = [], []
    with open_stream(pictures, fps=25, engine="cpu", query=["moving"], maps=("clip12",)) as stream:
        for index, selection in enumerate(stream):
            moving, pixels = selection.maps["clip12"] >= 0.5, np.zeros((HEIGHT, WIDTH), np.bool_)
            pixels[places(index)] = True
            cells = pixels.reshape(HEIGHT // 16, 16, WIDTH // 16, 16)
            near = np.s_[TOP // 16 - 1 : (TOP + SIDE) // 16 + 1]  # its path, and the cells beside it
            if index >= SETTLED:
                inside.append(moving[cells.all((1, 3))].mean())
                outside.append(np.delete(moving, near, axis=0).mean())
    return float(np.mean(inside)), float(np.mean(outside))


@pytest.mark.parametrize("ground", [(20, 50), (40, 150)], ids=["night", "day"])
@pytest.mark.parametrize("drops", [60, 90])
def test_a_downpour_does_not_move_and_what_moves_in_it_does(drops: int, ground: tuple[int, int]) -> None:
    inside, outside = shares(rainy(drops, *ground))
    assert outside < 0.02
    assert inside > 0.5


def test_drops_all_over_the_picture_are_rain_from_the_third_frame_on() -> None:
    random, weather = np.random.default_rng(1), Weather()
    drops = [np.where(random.random(GRID) < 0.4, np.float32(0.25), np.float32(0)) for _ in range(6)]
    found = [weather.update(each) for each in drops]
    assert found[:2] == [0, 0]
    assert all(0.25 < share <= 0.5 for share in found[2:])
    weather.reset()
    assert [weather.update(each) for each in drops[:3]][:2] == [0, 0]


def test_what_changes_in_its_place_is_no_rain() -> None:
    """Leaves that sway, or a camera that is not held still: the same cells change again and again."""
    random, weather = np.random.default_rng(2), Weather()
    edges = random.random(GRID) < 0.4
    for _ in range(6):
        assert weather.update(np.where(edges, random.uniform(0.1, 1, GRID), 0).astype(np.float32)) == 0


def test_changes_in_two_thirds_of_the_picture_are_no_rain() -> None:
    random, weather = np.random.default_rng(2), Weather()
    for _ in range(6):
        drops = np.where(random.random(GRID) < 0.4, np.float32(0.25), np.float32(0))
        drops[:8] = 0
        assert weather.update(drops) == 0


@pytest.mark.parametrize("grid", [(2, 2), (3, 40)])
def test_pictures_of_a_few_cells_have_no_weather(grid: tuple[int, int]) -> None:
    weather = Weather()
    assert [weather.update(np.full(grid, 0.5, np.float32)) for _ in range(4)] == [0] * 4


def test_correlation_is_pearsons() -> None:
    one, other = np.random.default_rng(4).random((2, 30)) < 0.4
    assert correlation(one, other) == pytest.approx(np.corrcoef(one, other)[0, 1], abs=1e-12)
    assert correlation(one, np.ones_like(one)) == 1
