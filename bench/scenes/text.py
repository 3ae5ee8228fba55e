"""Generated clips with known words: slides, a page that scrolls, captions, a terminal, signs in a street."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # pillow comes with foveate[ocr], which reads what is drawn
    from PIL import Image, ImageDraw, ImageFont

Rgb = NDArray[np.uint8]  # [540, 960, 3]
Written = tuple[Rgb, tuple[str, ...]]  # a frame, and the words that are wholly inside it

WIDTH, HEIGHT = 960, 540
SEED: Final = 11
_HELD = 20  # frames for which a slide or a caption stays
VOCABULARY: Final = """
anchor basket bridge candle carbon circle copper corner cotton desert dinner double engine fabric figure
flower forest garden gentle golden hammer harbor island jacket kettle ladder leather letter magnet marble
market meadow mirror morning motion needle number orange packet pencil pepper pillow planet pocket purple
rabbit ribbon river rocket saddle school season signal silver simple spring square stable summer temple
thunder timber travel tunnel valley velvet violet wagon walnut window winter yellow
"""


@dataclass(frozen=True, slots=True)
class TextScene:
    """A generated clip: how it is drawn, and a function that yields any number of its frames."""

    how: str
    frames: Callable[..., Iterator[Written]]  # (frames, seed=SEED)


def slides(frames: int, seed: int = SEED) -> Iterator[Written]:
    """A white page with a heading and six lines; another one every 20 frames."""
    draw = _Words(seed)
    for start in range(0, frames, _HELD):
        page = _page("white")
        told = _line(page, draw.take(3), 60, 50, 44, "navy")
        for row in range(6):
            told += _line(page, draw.take(6), 60, 140 + 62 * row, 26, "black")
        yield from [(np.asarray(page[0]), told)] * min(_HELD, frames - start)


def scroll(frames: int, seed: int = SEED) -> Iterator[Written]:
    """A page of lines of 20 pixels, on which the view moves down by 2 pixels a frame."""
    draw, height = _Words(seed), 2 * frames + HEIGHT + 40
    page = _page("white", height)
    rows = [(top, _line(page, draw.take(8), 50, top, 20, "black")) for top in range(20, height - 40, 36)]
    picture = np.asarray(page[0])
    for index in range(frames):
        top = 2 * index
        told = [words for row, words in rows if top <= row - 4 and row + 28 <= top + HEIGHT]
        yield picture[top : top + HEIGHT].copy(), tuple(word for words in told for word in words)


def captions(frames: int, seed: int = SEED) -> Iterator[Written]:
    """A textured background that moves by 3 pixels a frame, and two lines of white on black, new every 20 frames."""
    draw, background = _Words(seed), _grain(WIDTH + 3 * frames, seed)
    told: tuple[str, ...] = ()
    lines: list[list[str]] = []
    for index in range(frames):
        if index % _HELD == 0:
            lines = [draw.take(5), draw.take(5)]
        page = _drawing(background[:, 3 * index : 3 * index + WIDTH])
        page[1].rectangle((150, 430, 810, 520), fill="black")
        told = _line(page, lines[0], 180, 438, 28, "white") + _line(page, lines[1], 180, 478, 28, "white")
        yield np.asarray(page[0]), told


def terminal(frames: int, seed: int = SEED) -> Iterator[Written]:
    """Light words on a dark page, 16 pixels high, to which a line comes every third frame; all move up when full."""
    draw, rows = _Words(seed), 21
    lines = [draw.take(8) for _ in range(rows - 8)]
    for index in range(frames):
        if index % 3 == 0:
            lines = [*lines, draw.take(8)][-rows:]
        page = _page((18, 18, 24))
        told = tuple(
            word
            for row, words in enumerate(lines)
            for word in _line(page, words, 20, 12 + 25 * row, 16, (190, 230, 190))
        )
        yield np.asarray(page[0]), told


def street(frames: int, seed: int = SEED) -> Iterator[Written]:
    """Boards with words of 18 to 34 pixels on a textured wall; all moves by 1 pixel a frame."""
    draw, width = _Words(seed), WIDTH + frames
    page = _drawing(_grain(width, seed))
    boards = []
    for place in range(24):
        left, top, size = 20 + place % 6 * 175, 20 + place // 6 * 130, 18 + place % 5 * 4
        page[1].rectangle((left - 8, top - 6, left + 150, top + size + 12), fill=("white", "yellow", "navy")[place % 3])
        words = _line(page, draw.take(1), left, top, size, ("black", "black", "white")[place % 3])
        boards.append((left, left + round(page[1].textlength(words[0], font(size))), words))
    picture = np.asarray(page[0])
    for index in range(frames):
        told = [words for left, right, words in boards if index <= left and right <= index + WIDTH]
        yield picture[:, index : index + WIDTH].copy(), tuple(word for words in told for word in words)


TEXT_SCENES: Final[Mapping[str, TextScene]] = {
    scene.__name__: TextScene(f"generated: {' '.join((scene.__doc__ or '').split())}", scene)
    for scene in (slides, scroll, captions, terminal, street)
}

_Page: TypeAlias = "tuple[Image.Image, ImageDraw.ImageDraw]"
_Colour = str | tuple[int, int, int]


class _Words:
    """Draws words, seeded."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._known = VOCABULARY.split()

    def take(self, count: int) -> list[str]:
        return [self._known[place] for place in self._generator.integers(0, len(self._known), count)]


def _page(colour: _Colour, height: int = HEIGHT) -> _Page:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, height), colour)
    return image, ImageDraw.Draw(image)


def _drawing(picture: Rgb) -> _Page:
    from PIL import Image, ImageDraw

    image = Image.fromarray(np.ascontiguousarray(picture))
    return image, ImageDraw.Draw(image)


def _line(page: _Page, words: list[str], left: int, top: int, size: int, colour: _Colour) -> tuple[str, ...]:
    page[1].text((left, top), " ".join(words), fill=colour, font=font(size))
    return tuple(words)


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own font, of so many pixels."""
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _grain(width: int, seed: int) -> Rgb:
    """A smooth coloured texture, uint8[540, width, 3]."""
    generator = np.random.default_rng(seed)
    coarse = generator.uniform(40, 200, (HEIGHT // 14, width // 14, 3)).astype(np.float32)
    return np.clip(cv2.resize(coarse, (width, HEIGHT), interpolation=cv2.INTER_CUBIC), 0, 255).astype(np.uint8)
