"""Cuts, and what may be taken for one, made of the samples' footage: luma, and the frames with a cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Plane

WIDTH, HEIGHT = 640, 384
HALF: Final = 24
"""Frames before, and after, what happens."""
_BLEND: Final = 12  # frames of a fade or dissolve
_PAN: Final = 12  # pixels a frame
_NOISE: Final = 1.0

Shots = Sequence[Plane]
Floats = Iterator[NDArray[np.float32]]


def scene(kind: str, one: Shots, other: Shots, seed: int) -> tuple[list[Plane], frozenset[int]]:
    """The 48 frames of one of ``KINDS``, uint8[384, 640], from two shots of 48 frames, and its cuts' frames."""
    make, cuts = KINDS[kind]
    generator = np.random.default_rng(seed)
    frames = [
        np.clip(np.rint(frame + generator.normal(0, _NOISE, frame.shape)), 0, 255).astype(np.uint8)
        for frame in make([resized(each) for each in one], [resized(each) for each in other])
    ]
    return frames, cuts


def resized(luma: Plane) -> Plane:
    """The picture at 640x384, whatever its shape."""
    return np.asarray(cv2.resize(luma, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def _cut(one: Shots, other: Shots) -> Floats:
    yield from (frame.astype(np.float32) for frame in (*one[:HALF], *other[HALF : 2 * HALF]))


def _mirrored(one: Shots, _: Shots) -> Floats:
    """To the same shot, mirrored: the brightness stays."""
    yield from _cut(one, [frame[:, ::-1] for frame in one])


def _dissolve(one: Shots, other: Shots) -> Floats:
    for index in range(2 * HALF):
        share = np.float32(np.clip((index - HALF + _BLEND / 2) / _BLEND, 0, 1))
        yield one[index] * (1 - share) + other[index] * share


def _fade(one: Shots, other: Shots) -> Floats:
    """Through black."""
    for index, frame in enumerate((*one[:HALF], *other[HALF : 2 * HALF])):
        share = np.float32(np.clip(abs(index - HALF + 0.5) / _BLEND, 0, 1))
        yield 16 + (frame.astype(np.float32) - 16) * share


def _flash(one: Shots, _: Shots) -> Floats:
    """One frame of white, and 12 frames later two of twice the light."""
    for index, frame in enumerate(one[: 2 * HALF]):
        if index == HALF:
            yield np.full(frame.shape, 235, np.float32)
        else:
            yield frame * np.float32(2 if index in (HALF + 12, HALF + 13) else 1)


def _flicker(one: Shots, _: Shots) -> Floats:
    for index, frame in enumerate(one[: 2 * HALF]):
        yield frame * np.float32(1 + 0.15 * np.sin(index * 2 * np.pi / 5))


def _pan(one: Shots, _: Shots) -> Floats:
    """A fast pan over the first frame and its mirror image, side by side."""
    wide = np.concatenate([one[0], one[0][:, ::-1]], axis=1).astype(np.float32)
    for index in range(2 * HALF):
        yield np.roll(wide, -_PAN * index, axis=1)[:, :WIDTH]


_AT_HALF: Final = frozenset({HALF})
KINDS: Final[Mapping[str, tuple[Callable[[Shots, Shots], Floats], frozenset[int]]]] = {
    "cut": (_cut, _AT_HALF),
    "cut to the mirror image": (_mirrored, _AT_HALF),
    "dissolve": (_dissolve, frozenset()),
    "fade": (_fade, frozenset()),
    "flash": (_flash, frozenset()),
    "flicker": (_flicker, frozenset()),
    "pan": (_pan, frozenset()),
}
