"""Pictures with signs whose words and sizes are known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Plane
from foveate.bench.scenes.text import VOCABULARY, font

WIDTH, HEIGHT = 1920, 1080
SIZES: Final = (12, 16, 24, 36, 54)
"""Of the type, in pixels: letters such as H are about 0.7 of that high."""
_OF_EACH: Final = 2
_COLOURS: Final = (("white", "black"), ("yellow", "black"), ("navy", "white"), ("darkgreen", "white"))
_TRIES: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Signs:
    """A picture, R'G'B' uint8[H, W, 3], and the words of each size; each occurs once."""

    picture: Plane
    words: Mapping[int, tuple[str, ...]]


def signs_on(background: Plane, seed: int) -> Signs:
    """Signs of one word, two of each of SIZES, at random places of ``background`` that do not overlap."""
    from PIL import Image, ImageDraw

    generator = np.random.default_rng(seed)
    image = Image.fromarray(np.ascontiguousarray(background))
    draw = ImageDraw.Draw(image)
    chosen = iter(generator.permutation(VOCABULARY.split()).tolist())
    taken = np.zeros(background.shape[:2], np.bool_)
    words: dict[int, tuple[str, ...]] = {}
    for size in sorted(SIZES, reverse=True):
        told = []
        for _ in range(_OF_EACH):
            word, (plate, ink) = next(chosen), _COLOURS[generator.integers(len(_COLOURS))]
            width, height = round(draw.textlength(word, font(size))) + size, 2 * size
            left, top = _free(taken, width, height, generator)
            draw.rectangle((left, top, left + width - 1, top + height - 1), fill=plate)
            draw.text((left + size // 2, top + size // 3), word, fill=ink, font=font(size))
            told.append(word)
        words[size] = tuple(told)
    return Signs(np.asarray(image), words)


def _free(taken: NDArray[np.bool_], width: int, height: int, generator: np.random.Generator) -> tuple[int, int]:
    """Left and top of a place that is not taken, which is taken then, with a rim as wide as it is high."""
    for _ in range(_TRIES):
        left = int(generator.integers(taken.shape[1] - width))
        top = int(generator.integers(taken.shape[0] - height))
        if not taken[top : top + height, left : left + width].any():
            taken[max(top - height, 0) : top + 2 * height, max(left - height, 0) : left + width + height] = True
            return left, top
    raise RuntimeError("there is no room for another sign")


def enlarged(picture: Plane) -> Plane:
    """``picture`` at 1920x1080, bicubically."""
    return np.asarray(cv2.resize(picture, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC), np.uint8)
