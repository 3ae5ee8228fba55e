"""Things that move while the light or the exposure changes, before a camera that rests or pans, with ground truth."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.scenes.flicker import lamps
from foveate.bench.scenes.moving import HEIGHT, WIDTH, Box, Moment

Picture = NDArray[np.float32]
Light = Callable[[int], Picture | float]
_BLACK: Final = 16.0  # luma of black, which light does not change
_PAN: Final = 3  # pixels a frame
_LIT: Final = (slice(160, 320), slice(160, 480))  # beneath the lamp: rows and columns


class Thing(NamedTuple):
    """A rectangle that crosses the picture from the left, again and again."""

    rate: float  # pixels a frame
    top: int
    width: int
    height: int
    luma: float
    stripes: float = 0.0  # amplitude


_SMALL: Final = (
    *(Thing(0.5, 128, 48, 48, 190, 45), Thing(2, 192, 48, 48, 215)),
    *(Thing(2, 256, 48, 48, 190, 45), Thing(6, 320, 48, 48, 190, 45)),
)
_LARGE: Final = (Thing(2, 16, 208, 112, 70), Thing(5, 144, 256, 112, 120), Thing(12, 272, 192, 96, 170))


def still(index: int) -> float:
    """Light that does not change."""
    return 1.0


def exposure(index: int) -> float:
    """A camera that opens by 4% a frame for 12 frames, waits for 12, closes again, and so on."""
    turn = index % 48
    return float(1.04 ** (min(turn, 12) if turn < 24 else max(36 - turn, 0)))


def switched(index: int) -> float:
    """A light that is switched on and off, every 20 frames."""
    return 1.5 if index // 20 % 2 else 1.0


def beneath_a_lamp(index: int) -> Picture:
    """Light that varies by 12% at 5 frames to a period, in a patch with soft edges."""
    share = np.zeros((HEIGHT, WIDTH), np.float32)
    share[_LIT] = 1
    share = np.asarray(cv2.GaussianBlur(share, (0, 0), 12), np.float32)
    return np.asarray(1 + 0.12 * np.sin(index * 2 * np.pi / 5) * share, np.float32)


def scene(
    frames: int,
    things: tuple[Thing, ...] = _SMALL,
    light: Light = still,
    pan: int = 0,
    plain: bool = False,
    noise: float = 1.0,
    rain: int = 0,
    ground: tuple[float, float] = (40, 150),
    seed: int = 11,
) -> Iterator[Moment]:
    """``things`` cross a picture of smooth grain between the lumas of ``ground``, or of their mean if ``plain``.

    ``pan``: pixels a frame that the camera moves by. ``noise``: standard deviation in grey levels. ``rain``: streaks.
    """
    generator = np.random.default_rng(seed)
    wide = _ground(generator, WIDTH + pan * frames, ground, plain)
    for index in range(frames):
        picture, boxes = wide[:, pan * index : pan * index + WIDTH].copy(), []
        for number, thing in enumerate(things):
            boxes += _placed(picture, number, thing, index)
        picture = _BLACK + (picture - _BLACK) * light(index)
        for _ in range(rain):
            _streak(picture, generator)
        picture += generator.normal(0, noise, picture.shape).astype(np.float32)
        yield Moment(np.clip(np.rint(picture), 0, 255).astype(np.uint8), tuple(boxes))


SCENES: Final[Mapping[str, Callable[..., Iterator[Moment]]]] = {
    "lamps, 3%": partial(lamps, flicker=0.03),
    "lamps, 3%, compressed": partial(lamps, flicker=0.03),
    "lamps, 12%": partial(lamps, flicker=0.12),
    "room, 6%": partial(lamps, flicker=0.06, room=True),
    "room, 12%": partial(lamps, flicker=0.12, room=True),
    "no change": scene,
    "things beneath a lamp, 12%": partial(scene, light=beneath_a_lamp),
    "exposure": partial(scene, light=exposure),
    "light switched": partial(scene, light=switched),
    "no change, compressed": scene,
    "large plain things": partial(scene, things=_LARGE),
    "large plain things, plain ground": partial(scene, things=_LARGE, plain=True),
    "large plain things, exposure": partial(scene, things=_LARGE, light=exposure),
    "pan": partial(scene, pan=_PAN),
    "pan, exposure": partial(scene, pan=_PAN, light=exposure),
    "night, noise": partial(scene, ground=(20, 50), noise=8.0),
    "night, strong noise": partial(scene, ground=(20, 50), noise=16.0),
    "night, rain": partial(scene, ground=(20, 50), noise=2.0, rain=30),
    "night, heavy rain": partial(scene, ground=(20, 50), noise=2.0, rain=150),
}
COMPRESSED: Final = frozenset({"lamps, 3%, compressed", "no change, compressed"})
"""Scenes to be encoded at a low quality, so that keyframes pulse."""


def _ground(generator: np.random.Generator, width: int, ground: tuple[float, float], plain: bool) -> Picture:
    if plain:
        return np.full((HEIGHT, width), sum(ground) / 2, np.float32)
    coarse = generator.uniform(*ground, (HEIGHT // 24, width // 24)).astype(np.float32)
    return np.asarray(cv2.resize(coarse, (width, HEIGHT), interpolation=cv2.INTER_CUBIC), np.float32)


def _placed(picture: Picture, number: int, thing: Thing, index: int) -> list[Box]:
    """Draw a thing, and tell where it is; nothing while it is outside."""
    at = 16 + round(thing.rate * index) % (WIDTH + thing.width) - (thing.width if thing.width > 48 else 0)
    left, right = max(at, 0), min(at + thing.width, WIDTH)
    if right <= left:
        return []
    rows, columns = np.mgrid[0 : thing.height, left - at : right - at]
    stripes = thing.stripes * np.sin(columns * (0.3 + 0.1 * number) + rows * 0.25)
    picture[thing.top : thing.top + thing.height, left:right] = thing.luma + stripes
    return [Box(number, left, thing.top, right, thing.top + thing.height)]


def _streak(picture: Picture, generator: np.random.Generator) -> None:
    """A falling drop: a line of 24 pixels, brighter by 30."""
    column, row = int(generator.integers(WIDTH - 1)), int(generator.integers(HEIGHT - 24))
    picture[row : row + 24, column : column + 2] += 30
