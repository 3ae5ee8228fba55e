"""A clip on which comparing neighbouring frames fails: most of it drifts slowly, a part of it flickers.

The drifting texture moves a fifth of a pixel per frame. That is less change per frame than the flicker, which covers
more cells than the usual budget; but it adds up.
"""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.case import Clip
from foveate.bench.clips.encoding import LOSSLESS, encode, grey_frame

HOW: Final = "generated: a texture that moves 0.2 pixels a frame, a quarter of it flickering by 8 levels; lossless x264"
_WIDTH, _HEIGHT, _RATE = 640, 480, Fraction(25)
_STEP = 0.2  # pixels per frame
_GRAIN = 12  # pixels between independent values of the texture
_FLICKER = 8  # grey levels, at most
_SEED = 7


def drift_clip(folder: Path, frames: int) -> Clip:
    """Make the clip in ``folder``. Raises SinkError."""
    path = folder / "drift.mp4"
    encode(path, map(grey_frame, drifting(frames)), _RATE, LOSSLESS)
    return Clip("drift", path, HOW)


def drifting(frames: int) -> Iterator[NDArray[np.uint8]]:
    """The luma of each frame, uint8[480, 640]."""
    generator = np.random.default_rng(_SEED)
    margin = int(frames * _STEP) + 2
    coarse = generator.uniform(40, 215, (_HEIGHT // _GRAIN + 2, (_WIDTH + margin) // _GRAIN + 2)).astype(np.float32)
    texture = cv2.resize(coarse, (_WIDTH + margin, _HEIGHT), interpolation=cv2.INTER_CUBIC)
    for index in range(frames):
        shift = np.array([[1, 0, -index * _STEP], [0, 1, 0]], np.float32)
        luma = np.asarray(cv2.warpAffine(texture, shift, (_WIDTH, _HEIGHT), flags=cv2.INTER_LINEAR))
        box = luma[_HEIGHT // 4 : _HEIGHT * 3 // 4, _WIDTH // 4 : _WIDTH * 3 // 4]
        box += generator.integers(-_FLICKER, _FLICKER + 1, box.shape)
        yield np.clip(np.rint(luma), 0, 255).astype(np.uint8)
