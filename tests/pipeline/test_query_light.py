"""Changes of light are no motion, and what moves in them still is: generated frames, true as they are drawn."""

from collections.abc import Callable, Iterator
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline import open_stream

Picture = NDArray[np.float32]
HEIGHT, WIDTH, FRAMES, SETTLED = 192, 320, 60, 25
SIDE, TOP = 48, 96
LAMP = np.s_[32:80, 208:288]
LAMP_CELLS = np.s_[2:5, 13:18]
MOVING = "clip12"


def grain(seed: int, low: float, high: float, height: int = HEIGHT, width: int = WIDTH) -> Picture:
    """Smooth grain, float32[height, width]."""
    coarse = np.random.default_rng(seed).uniform(low, high, (height // 12, width // 12)).astype(np.float32)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)


def thing(index: int, rate: int = 3) -> tuple[slice, slice]:
    """Rows and columns of a thing that crosses the picture, again and again, at ``rate`` pixels a frame."""
    left = 16 + rate * index % (WIDTH - SIDE - 16)
    return slice(TOP, TOP + SIDE), slice(left, left + SIDE)


def covered(index: int, rate: int) -> NDArray[np.bool_]:
    """bool[grid]: the cells that lie wholly in the thing."""
    pixels = np.zeros((HEIGHT, WIDTH), np.bool_)
    pixels[thing(index, rate)] = True
    return np.asarray(pixels.reshape(HEIGHT // 16, 16, WIDTH // 16, 16).all((1, 3)))


def frames(light: Callable[[int], Picture | float], crossed: bool = True, noise: float = 1.0) -> Iterator[Picture]:
    """Still grain with a bright lamp in it, that a striped thing crosses: float32[HEIGHT, WIDTH]."""
    ground, random = grain(1, 40, 130), np.random.default_rng(2)
    ground[LAMP] = grain(3, 180, 210, 48, 80)
    stripes = grain(4, 60, 190, SIDE, SIDE)
    for index in range(FRAMES):
        picture = ground.copy()
        if crossed:
            picture[thing(index)] = stripes
        yield np.asarray(picture * light(index) + random.normal(0, noise, picture.shape), np.float32)


def found(pictures: Iterator[NDArray[Any]]) -> list[NDArray[np.bool_]]:
    """Which cells are moving, bool[grid], from the frame SETTLED on."""
    drawn = (np.clip(np.rint(picture), 0, 255).astype(np.uint8) for picture in pictures)
    with open_stream(drawn, fps=25, engine="cpu", query=["moving"], maps=(MOVING,)) as stream:
        return [selection.maps[MOVING] >= 0.5 for selection in stream][SETTLED:]


def recall(cells: list[NDArray[np.bool_]], rate: int = 3) -> float:
    """Share of the thing's cells that are found."""
    pairs = [(one, covered(SETTLED + index, rate)) for index, one in enumerate(cells)]
    return sum((one & truth).sum() for one, truth in pairs) / sum(truth.sum() for _, truth in pairs)


def flickering_lamp(share: float) -> Callable[[int], Picture]:
    """The lamp's light varies at random by +-``share``."""
    gains = np.random.default_rng(5).uniform(1 - share, 1 + share, FRAMES)

    def light(index: int) -> Picture:
        field = np.ones((HEIGHT, WIDTH), np.float32)
        field[LAMP] = gains[index]
        return field

    return light


def room(share: float) -> Callable[[int], float]:
    """The light of the whole picture varies by a sine of five frames."""
    return lambda index: 1 + share * float(np.sin(index * 2 * np.pi / 5))


def exposure(index: int) -> float:
    """The camera opens by 4% a frame for ten frames, and closes as fast."""
    turn = index % 20
    return 1.04 ** min(turn, 20 - turn)


def beneath(index: int) -> Picture:
    """The light of the part of the picture that the thing crosses varies by 12%, with soft edges."""
    field = np.ones((HEIGHT, WIDTH), np.float32)
    field[TOP:, 64:256] = room(0.12)(index)
    return np.asarray(cv2.GaussianBlur(field, (0, 0), 20), np.float32)


@pytest.mark.parametrize("share", [0.03, 0.06, 0.12])
def test_a_lamp_that_flickers_does_not_move(share: float) -> None:
    cells = found(frames(flickering_lamp(share)))
    assert np.mean([one[LAMP_CELLS] for one in cells]) < 0.02
    assert recall(cells) > 0.95


@pytest.mark.parametrize("noise", [4, 8, 16, 24])
def test_noise_in_the_dark_does_not_move(noise: float) -> None:
    """A camera at night, which amplifies what little it sees."""
    assert np.mean(found(frames(lambda index: 0.3, crossed=False, noise=noise))) < 0.005


def test_what_moves_in_noise_is_found() -> None:
    """Its stripes are a few times as strong as the noise."""
    assert recall(found(frames(lambda index: 1, noise=12))) > 0.7


@pytest.mark.parametrize("light", [room(0.06), room(0.12), exposure, beneath], ids=["6%", "12%", "exposure", "beneath"])
def test_a_room_whose_light_changes_rests(light: Callable[[int], Picture | float]) -> None:
    assert np.mean(found(frames(light, crossed=False))) < 0.005


@pytest.mark.parametrize("light", [room(0.06), room(0.12), exposure, beneath], ids=["6%", "12%", "exposure", "beneath"])
def test_what_moves_while_the_light_changes_is_found(light: Callable[[int], Picture | float]) -> None:
    assert recall(found(frames(light))) > 0.85


@pytest.mark.parametrize("colour", [(140, 140, 140), (180, 90, 40)], ids=["brighter", "as bright"])
def test_a_plain_thing_before_a_plain_wall_is_no_light(colour: tuple[int, int, int]) -> None:
    """No texture tells it from a light: its edges do or, where it is as bright as the wall, its chroma."""
    rate = 33  # all of its cells change all the time

    def pictures() -> Iterator[NDArray[np.uint8]]:
        for index in range(FRAMES):
            picture = np.full((HEIGHT, WIDTH, 3), 110, np.uint8)
            picture[thing(index, rate)] = colour
            yield picture

    assert recall(found(pictures()), rate) > 0.95
