"""Things that move among lamps that flicker, with ground truth."""

from collections.abc import Iterator
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.scenes.moving import HEIGHT, WIDTH, Box, Moment

LAMPS: Final = ((32, 32, 128, 96), (256, 32, 384, 96), (464, 16, 592, 112))
"""Left, top, right and bottom of the lamps, in pixels: whole cells. Nothing passes before them."""
_THINGS: Final = ((0.5, 128, True), (2.0, 192, False), (2.0, 256, True), (6.0, 320, True))
"""Pixels a frame, top, and whether there are stripes on it: otherwise it is plain."""
_SIDE: Final = 48


def lamps(frames: int, flicker: float, noise: float = 1.0, room: bool = False, seed: int = 11) -> Iterator[Moment]:
    """Four things cross a still picture with three bright lamps, whose light varies by +-``flicker``, a share.

    One lamp varies at random, one by a sine of five frames, one in steps of three frames; with ``room``, the whole
    picture varies by that sine instead. ``noise``: standard deviation in grey levels.
    """
    generator = np.random.default_rng(seed)
    ground = _ground(generator)
    for index in range(frames):
        picture, boxes = ground.copy(), []
        for thing, (rate, top, striped) in enumerate(_THINGS):
            left = 16 + round(rate * index) % (WIDTH - _SIDE - 16)
            picture[top : top + _SIDE, left : left + _SIDE] = _thing(thing, striped)
            boxes.append(Box(thing, left, top, left + _SIDE, top + _SIDE))
        sine = float(np.sin(index * 2 * np.pi / 5))
        gains = (float(generator.uniform(-1, 1)), sine, float(index // 3 % 2 * 2 - 1))
        if room:
            picture *= np.float32(1 + flicker * sine)
        else:
            for (left, top, right, bottom), gain in zip(LAMPS, gains, strict=True):
                picture[top:bottom, left:right] *= np.float32(1 + flicker * gain)
        picture += generator.normal(0, noise, picture.shape).astype(np.float32)
        yield Moment(np.clip(np.rint(picture), 0, 255).astype(np.uint8), tuple(boxes))


def _ground(generator: np.random.Generator) -> NDArray[np.float32]:
    """Smooth grain from 40 to 150; the lamps from 190 to 225."""
    coarse = generator.uniform(40, 150, (HEIGHT // 24, WIDTH // 24)).astype(np.float32)
    ground = np.asarray(cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC), np.float32)
    for left, top, right, bottom in LAMPS:
        rows, columns = np.mgrid[0 : bottom - top, 0 : right - left]
        ground[top:bottom, left:right] = 190 + 35 * np.exp(
            -(((rows - (bottom - top) / 2) / 30) ** 2) - ((columns - (right - left) / 2) / 40) ** 2
        )
    return ground


def _thing(thing: int, striped: bool) -> NDArray[np.float32]:
    """float32[48, 48]."""
    rows, columns = np.mgrid[0:_SIDE, 0:_SIDE]
    if not striped:
        return np.full((_SIDE, _SIDE), 215, np.float32)
    return np.asarray(190 + 45 * np.sin(columns * (0.3 + 0.1 * thing) + rows * 0.25), np.float32)
