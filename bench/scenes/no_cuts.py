"""What may be taken for a cut and is none, made of footage: light, movement, and one picture that becomes another."""

from collections.abc import Mapping
from functools import partial
from typing import Final

import cv2
import numpy as np

from foveate.bench.scenes.cuts import (
    BLACK,
    FADE,
    HALF,
    HEIGHT,
    WIDTH,
    Frames,
    Kind,
    Pixels,
    Shot,
    as_floats,
    black,
    faded,
    lit,
)

_WHITE: Final = 235.0
_WHIP: Final = 160  # pixels a frame, at its fastest
_BAR: Final = WIDTH // 8  # a picture of 5:3 becomes one of 5:4
_HAND: Final = 55.0  # grey level
_OBJECT: Final = WIDTH * 3 // 4  # pixels across
_OBJECT_STEP: Final = 70  # pixels a frame


def _dissolve(frames: int, one: Shot, other: Shot) -> Frames:
    for index, (before, after) in enumerate(zip(as_floats(one), as_floats(other), strict=True)):
        share = np.float32(np.clip((index - HALF + frames / 2) / frames, 0, 1))
        yield before * (1 - share) + after * share


def _wipe(one: Shot, other: Shot) -> Frames:
    for index, (frame, after) in enumerate(zip(as_floats(one), as_floats(other), strict=True)):
        edge = int(WIDTH * np.clip((index - HALF + FADE / 2) / FADE, 0, 1))
        frame[:, :edge] = after[:, :edge]
        yield frame


def _faded(one: Shot, _: Shot) -> Frames:
    return faded(one)


def _black_frames(one: Shot, _: Shot) -> Frames:
    for index, frame in enumerate(as_floats(one)):
        yield black() if HALF <= index < HALF + 4 else frame


def _flash(one: Shot, _: Shot) -> Frames:
    """One frame of white, and 12 frames later two of twice the light."""
    for index, picture in enumerate(one):
        if index == HALF:
            yield np.full((HEIGHT, WIDTH, 3), _WHITE, np.float32)
        else:
            yield lit(picture, 2 if index in (HALF + 12, HALF + 13) else 1)


def _flicker(one: Shot, _: Shot) -> Frames:
    for index, picture in enumerate(one):
        yield lit(picture, 1 + 0.15 * np.sin(index * 2 * np.pi / 5))


def _exposure(gain: float, one: Shot, _: Shot) -> Frames:
    for index, picture in enumerate(one):
        yield lit(picture, gain if index >= HALF else 1)


def _infrared(one: Shot, _: Shot) -> Frames:
    """The camera takes its infrared filter out: grey, of other brightness."""
    for index, picture in enumerate(one):
        if index < HALF:
            yield picture.astype(np.float32)
        else:
            red, green, blue = np.moveaxis(picture.astype(np.float32), 2, 0)
            grey = 255 * ((0.5 * red + 0.2 * green + 0.3 * blue) / 255) ** np.float32(0.6)
            yield np.repeat(grey[..., None], 3, axis=2)


def _wide(one: Shot) -> Pixels:
    """The first frame and its mirror image, side by side."""
    return np.concatenate([one[0], one[0][:, ::-1]], axis=1).astype(np.float32)


def _pan(step: int, one: Shot, _: Shot) -> Frames:
    wide = _wide(one)
    for index in range(2 * HALF):
        yield np.roll(wide, -step * index, axis=1)[:, :WIDTH]


def _whip_pan(one: Shot, _: Shot) -> Frames:
    """Two shots of the same place, and 12 frames of a blurred pan from one to the other."""
    wide, place = _wide(one), 0
    for index in range(2 * HALF):
        step = int(_WHIP * max(0.0, 1 - abs(index - HALF) / (FADE / 2)))
        frame = np.roll(wide, -place, axis=1)[:, :WIDTH]
        yield cv2.blur(frame, (step // 2 + 1, 1)).astype(np.float32)
        place += step


def _hand(one: Shot, _: Shot) -> Frames:
    """It covers the lens from the right, and leaves."""
    for index, frame in enumerate(as_floats(one)):
        covered = np.clip(2 * (1 - abs(index - HALF) / FADE), 0, 1)
        if edge := int(WIDTH * covered):
            frame[:, WIDTH - edge :] = _HAND + 10 * np.linspace(0, 1, edge, dtype=np.float32)[:, None]
        yield cv2.GaussianBlur(frame, (0, 0), 2).astype(np.float32) if edge else frame


def _object(one: Shot, other: Shot) -> Frames:
    """Something wide passes close by: the other shot is its surface."""
    surface = other[0][:, :_OBJECT].astype(np.float32)
    for index, frame in enumerate(as_floats(one)):
        left = _OBJECT_STEP * (index - HALF + 8) - _OBJECT
        first, last = max(left, 0), min(left + _OBJECT, WIDTH)
        if first < last:
            frame[:, first:last] = cv2.blur(surface, (_OBJECT_STEP // 2, 1))[:, first - left : last - left]
        yield frame


def _dark(one: Shot, _: Shot) -> Frames:
    for picture in one:
        yield lit(picture, 0.06)


def _bars(one: Shot, _: Shot) -> Frames:
    """Bars appear at both sides."""
    for index, frame in enumerate(as_floats(one)):
        if index >= HALF:
            frame[:, :_BAR] = frame[:, -_BAR:] = BLACK
        yield frame


NO_CUTS: Final[Mapping[str, Kind]] = {
    "dissolve, 12 frames": Kind(partial(_dissolve, 12)),
    "dissolve, 24 frames": Kind(partial(_dissolve, 24)),
    "wipe": Kind(_wipe),
    "fade out and in": Kind(_faded, pairs=False),
    "black frames": Kind(_black_frames, pairs=False),
    "flash": Kind(_flash, pairs=False),
    "flicker": Kind(_flicker, pairs=False),
    "exposure, darker": Kind(partial(_exposure, 0.4), pairs=False),
    "exposure, brighter": Kind(partial(_exposure, 2.2), pairs=False),
    "infrared": Kind(_infrared, pairs=False),
    "dark, with noise": Kind(_dark, pairs=False, noise=10.0),
    "bars": Kind(_bars, pairs=False),
    "pan": Kind(partial(_pan, 12), pairs=False),
    "fast pan": Kind(partial(_pan, 30), pairs=False),
    "whip pan": Kind(_whip_pan, pairs=False),
    "hand over the lens": Kind(_hand, pairs=False),
    "object close by": Kind(_object),
}
