"""Cuts, made of two shots of footage: the frames, and where the cuts are. Scenes without cuts are in no_cuts.py."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 640, 384
HALF: Final = 24
"""Frames before, and after, what happens."""
BLACK: Final = 16.0
FADE: Final = 12
"""Frames of a fade out, and of a fade in."""
_NOISE: Final = 1.0  # grey levels, standard deviation: a good camera
_DARK: Final = 0.15  # of the light
_DARK_NOISE: Final = 6.0
_GAP: Final = 3  # black frames

Shot = Sequence[NDArray[np.uint8]]
Pixels = NDArray[np.float32]
Frames = Iterator[Pixels]


class Kind(NamedTuple):
    """How a clip is made of two shots, and the frames among which each of its cuts may be said to be."""

    make: Callable[[Shot, Shot], Frames]
    cuts: tuple[range, ...] = ()
    pairs: bool = True  # False: the second shot does not matter
    noise: float = _NOISE


def clip(kind: Kind, one: Shot, other: Shot, seed: int) -> Iterator[NDArray[np.uint8]]:
    """The 48 frames of a clip, uint8[384, 640, 3], from two shots of 48 pictures uint8[H, W, 3]."""
    generator = np.random.default_rng(seed)
    for frame in kind.make([resized(each) for each in one], [resized(each) for each in other]):
        noise = generator.normal(0, kind.noise, (HEIGHT, WIDTH, 1))
        yield np.clip(np.rint(frame + noise), 0, 255).astype(np.uint8)


def resized(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The picture at 640x384, whatever its shape."""
    return np.asarray(cv2.resize(rgb, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def as_floats(pictures: Shot) -> Frames:
    """The pictures, to calculate with."""
    for picture in pictures:
        yield picture.astype(np.float32)


def lit(picture: NDArray[np.uint8], gain: float) -> Pixels:
    """The picture in ``gain`` times the light."""
    return BLACK + (picture.astype(np.float32) - BLACK) * np.float32(gain)


def black() -> Pixels:
    """A black frame."""
    return np.full((HEIGHT, WIDTH, 3), BLACK, np.float32)


def joined(one: Shot, other: Shot) -> list[NDArray[np.uint8]]:
    """The first half of one shot, and the second half of the other."""
    return [*one[:HALF], *other[HALF : 2 * HALF]]


def faded(pictures: Shot) -> Frames:
    """The pictures, with a fade to black and back in the middle."""
    for index, picture in enumerate(pictures):
        yield lit(picture, min(1.0, abs(index - HALF + 0.5) / FADE))


def _cut(one: Shot, other: Shot) -> Frames:
    return as_floats(joined(one, other))


def _mirrored(one: Shot, _: Shot) -> Frames:
    """To the same shot, mirrored: the colours stay."""
    return _cut(one, [picture[:, ::-1] for picture in one])


def _later(one: Shot, _: Shot) -> Frames:
    """To what the same camera sees a second later."""
    yield from as_floats([*one[: HALF // 2], *one[HALF + HALF // 2 : 2 * HALF]])


def _in_the_dark(one: Shot, other: Shot) -> Frames:
    for picture in joined(one, other):
        yield lit(picture, _DARK)


def _behind_black(one: Shot, other: Shot) -> Frames:
    for index, picture in enumerate(as_floats(joined(one, other))):
        yield black() if HALF - _GAP <= index < HALF else picture


def _faded(one: Shot, other: Shot) -> Frames:
    return faded(joined(one, other))


_AT_HALF: Final = (range(HALF, HALF + 1),)
CUTS: Final[Mapping[str, Kind]] = {
    "cut": Kind(_cut, _AT_HALF),
    "cut to the mirror image": Kind(_mirrored, _AT_HALF, pairs=False),
    "cut in the dark": Kind(_in_the_dark, _AT_HALF),
    "cut in the dark, with noise": Kind(_in_the_dark, _AT_HALF, noise=_DARK_NOISE),
    "cut behind black frames": Kind(_behind_black, _AT_HALF),
    "fade through black to another shot": Kind(_faded, (range(HALF, HALF + FADE),)),
    "a second left out": Kind(_later, (range(HALF // 2, HALF // 2 + 1),), pairs=False),
}
