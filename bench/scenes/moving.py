"""Generated clips with ground truth: where each object is in each frame, and what happens when."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Plane
from foveate.bench.scenes.drift import drifting

WIDTH, HEIGHT = 640, 384
CUT: Final = 30
"""The frame of the cut, fade or flash."""
FADE: Final = 20
"""Frames that it takes to fade."""
_SEED = 5
_NOISE = 1.0  # grey levels, standard deviation: a good camera


class Box(NamedTuple):
    """A thing in one frame: its number in the clip, and left, top, right, bottom in pixels, inside the picture."""

    thing: int
    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True, slots=True)
class Moment:
    """One frame: luma uint8[H, W], and the things that are seen in it."""

    luma: Plane
    boxes: tuple[Box, ...] = ()


Frames = Callable[[int], Iterator[Moment]]


def speeds(frames: int) -> Iterator[Moment]:
    """Four things of 48 pixels cross a still picture at 0.5, 2, 6 and 16 pixels a frame."""
    ground, generator = _texture(_SEED), np.random.default_rng(_SEED)
    rates, tops = (0.5, 2.0, 6.0, 16.0), (20, 110, 200, 300)
    for index in range(frames):
        picture, boxes = ground.copy(), []
        for thing, (rate, top) in enumerate(zip(rates, tops, strict=True)):
            boxes += _placed(picture, thing, round(rate * index) % (WIDTH - 48), top, 48)
        yield Moment(_noisy(picture, generator), tuple(boxes))


def arrivals(frames: int) -> Iterator[Moment]:
    """Things of 16 to 64 pixels appear, one every eight frames, in a still picture of which a quarter flickers."""
    ground, generator = _texture(_SEED), np.random.default_rng(_SEED)
    places = [(round(left), round(top)) for left, top in generator.uniform(0, (260, 300), (-(-frames // 8), 2))]
    for index in range(frames):
        picture, boxes = ground.copy(), []
        picture[:, 3 * WIDTH // 4 :] += generator.uniform(-12, 12, (HEIGHT, WIDTH // 4)).astype(np.float32)
        for thing, (left, top) in enumerate(places[: index // 8]):
            boxes += _placed(picture, thing, left, top, (16, 32, 64)[thing % 3])
        yield Moment(_noisy(picture, generator), tuple(boxes))


def occlusion(frames: int) -> Iterator[Moment]:
    """A thing of 64 pixels passes behind a post of 96 at 4 pixels a frame."""
    ground, generator = _texture(_SEED), np.random.default_rng(_SEED)
    left, right = WIDTH // 4, WIDTH // 4 + 96
    for index in range(frames):
        picture = ground.copy()
        boxes = _placed(picture, 0, 40 + 4 * index, 160, 64)
        picture[:, left:right] = 60
        yield Moment(_noisy(picture, generator), tuple(box for box in boxes if box.right <= left or box.left >= right))


def cut(frames: int) -> Iterator[Moment]:
    """Another still picture from frame 30 on."""
    yield from _changing(frames, lambda index: float(index >= CUT))


def fade(frames: int) -> Iterator[Moment]:
    """One still picture fades into another over 20 frames, from frame 30 on."""
    yield from _changing(frames, lambda index: min(max(index - CUT + 1, 0) / FADE, 1.0))


def flash(frames: int) -> Iterator[Moment]:
    """A still picture, of which frame 30 is white."""
    ground, generator = _texture(_SEED), np.random.default_rng(_SEED)
    for index in range(frames):
        yield Moment(_noisy(np.full_like(ground, 250) if index == CUT else ground, generator))


def drift(frames: int) -> Iterator[Moment]:
    """The texture of the quality measure's drift: 0.2 pixels a frame, a quarter of it flickers."""
    for luma in drifting(frames):
        yield Moment(luma)


def rest(frames: int) -> Iterator[Moment]:
    """A still picture with a camera's noise."""
    yield from _changing(frames, lambda index: 0.0)


SCENES: Final[Mapping[str, Frames]] = {
    scene.__name__: scene for scene in (speeds, arrivals, occlusion, cut, fade, flash, drift, rest)
}


def _changing(frames: int, share: Callable[[int], float]) -> Iterator[Moment]:
    """``share`` of each frame is how much it has of a second picture."""
    one, other = _texture(_SEED), _texture(_SEED + 1)
    generator = np.random.default_rng(_SEED)
    for index in range(frames):
        yield Moment(_noisy(one + np.float32(share(index)) * (other - one), generator))


def _placed(picture: NDArray[np.float32], thing: int, left: int, top: int, side: int) -> list[Box]:
    """Draw a thing, a bright square with stripes of its own, and tell where it is; nothing where it is outside."""
    right, bottom = min(left + side, WIDTH), min(top + side, HEIGHT)
    if right <= left or bottom <= top:
        return []
    rows, columns = np.mgrid[0 : bottom - top, 0 : right - left]
    picture[top:bottom, left:right] = 200 + 45 * np.sin(columns * (0.5 + 0.2 * (thing % 3)) + rows * 0.4)
    return [Box(thing, left, top, right, bottom)]


def _texture(seed: int) -> NDArray[np.float32]:
    """Smooth grain with values from 40 to 150, float32[H, W]."""
    coarse = np.random.default_rng(seed).uniform(40, 150, (HEIGHT // 24, WIDTH // 24)).astype(np.float32)
    return np.asarray(cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC), np.float32)


def _noisy(picture: NDArray[np.float32], generator: np.random.Generator) -> Plane:
    noise = generator.normal(0, _NOISE, picture.shape).astype(np.float32)
    return np.clip(np.rint(picture + noise), 0, 255).astype(np.uint8)
