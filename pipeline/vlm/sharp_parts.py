"""Which parts of a frame to show beside a thumbnail: those that leave the least error in the cells that matter."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Map
from foveate.pipeline.selection import PATCH

MOST: Final = 3
"""Parts of a frame."""
_SCALES: Final = ((1.0,), (1.0, 0.5))  # of the frame's own size, which parts may have; each list is tried by itself
_SHARES: Final = {1: (1.0,), 2: (1.0, 1 / 2), 3: (1.0, 2 / 3, 1 / 2, 1 / 3)}
"""Shares of what is left of the budget that the next part may take, by the number of parts that may still come."""
_SLIMMEST: Final = 4  # the longer side of what a part is looked for in, by the shorter one

Pixels = NDArray[np.uint8]  # [height, width, 3]


class Box(NamedTuple):
    """A part of a frame, in pixels."""

    left: int
    top: int
    right: int  # the first column behind it
    bottom: int  # the first row below it


class Part(NamedTuple):
    """A part to be shown."""

    box: Box
    scale: float  # of its picture, by the frame's own size
    tokens: int  # of the language model


def painted_error(frame: Pixels, small: Pixels) -> Map:
    """Squared error in each cell, summed over pixels and channels, of ``small`` enlarged bilinearly to the frame."""
    height, width, _ = frame.shape
    seen = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
    difference = cv2.absdiff(frame, seen).astype(np.float32)
    squares = cv2.transform(difference * difference, np.ones((1, 3), np.float32))
    rows = np.add.reduceat(squares, np.arange(0, height, PATCH), axis=0)
    return np.add.reduceat(rows, np.arange(0, width, PATCH), axis=1)


class SharpParts:
    """Chooses the parts of one frame, uint8[height, width, 3].

    ``asked``, float32[rows, columns], weighs the error of each cell; a token is a square of ``side`` pixels.
    """

    def __init__(self, frame: Pixels, asked: Map, side: float) -> None:
        self._frame, self._asked, self._side = frame, asked, side
        height, width, _ = frame.shape
        half = max(1, round(width / 2)), max(1, round(height / 2))
        reduced = cv2.resize(frame, half, interpolation=cv2.INTER_AREA)
        left = asked * painted_error(frame, reduced)  # type: ignore[arg-type, operator]
        self._left = {1.0: np.zeros_like(asked), 0.5: left}  # what a part of each scale leaves

    def choose(self, thumbnails: Sequence[tuple[int, Pixels]], budget: int) -> list[Part]:
        """The parts, at most three, that leave the least error beside one of ``thumbnails``; none where none fits.

        A thumbnail is its tokens and pixels, and leaves the rest of the ``budget`` to the parts.
        """
        best = _Choice(math.inf, ())
        for tokens, thumbnail in thumbnails:
            error = self.error(thumbnail)
            start = _Choice(float(error.sum()), ())
            for scales in _SCALES:
                search = _Search({scale: self._left[scale] for scale in scales}, self._frame.shape, self._side)
                best = min(best, *search.choices(start, error, budget - tokens), key=_Choice.rank)
        return list(best.parts)

    def error(self, thumbnail: Pixels, parts: Sequence[Part] = ()) -> Map:
        """The error of a reader that sees these pictures, in each cell, weighted by ``asked``."""
        error = self._asked * painted_error(self._frame, thumbnail)
        for part in parts:
            cells = cells_in(part.box, self._frame.shape)
            error[cells] = self._left[part.scale][cells]
        return error


class _Choice(NamedTuple):
    error: float
    parts: tuple[Part, ...]

    def rank(self) -> tuple[float, int]:
        """The key to compare choices by, the least first: fewer tokens in parts leave more for the thumbnail."""
        return self.error, sum(part.tokens for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Search:
    left: dict[float, Map]  # the weighted error that a part of each scale leaves
    shape: tuple[int, ...]  # of the frame
    side: float

    def choices(self, before: _Choice, error: Map, budget: int) -> Iterator[_Choice]:
        """``before``, and with it up to three parts in all, for the ``error`` that is left and ``budget`` tokens."""
        yield before
        more = MOST - len(before.parts)
        for most in sorted({math.floor(budget * share) for share in _SHARES.get(more, ())} - {0}):
            part = self._part(error, most)
            if part is None:
                continue
            rest, cells = error.copy(), cells_in(part.box, self.shape)
            rest[cells] = np.minimum(rest[cells], self.left[part.scale][cells])
            yield from self.choices(_Choice(float(rest.sum()), (*before.parts, part)), rest, budget - part.tokens)

    def _part(self, error: Map, most: int) -> Part | None:
        """The part of at most ``most`` tokens that takes away the most of the error, the smallest of equals."""
        best: tuple[float, int, Part | None] = (0.0, 0, None)
        for scale, left in self.left.items():
            gain = np.maximum(error - left, 0)
            block = self.side / scale  # pixels of the frame
            for gained, window in self._windows(gain, block, most):
                if gained < best[0]:
                    continue
                box = _fitted(gain[window] > 0, (window[0].start, window[1].start), self.shape, block)
                if box is None or (tokens := _blocks(box, block)) > most:
                    continue
                best = max(best, (gained, -tokens, Part(box, scale, tokens)), key=lambda each: each[:2])
        return best[2]

    def _windows(self, gain: Map, block: float, most: int) -> Iterator[tuple[float, tuple[slice, slice]]]:
        """The window of each shape of ``most`` blocks that gains the most, and how much."""
        sums = cv2.integral(gain.astype(np.float64))
        for rows in range(1, most + 1):
            columns = min(most // rows, _SLIMMEST * rows)
            if rows > _SLIMMEST * columns:
                return
            lengths = (min(math.floor(n * block), limit) for n, limit in zip((rows, columns), self.shape, strict=False))
            down, across = (min(max(1, n // PATCH), limit) for n, limit in zip(lengths, gain.shape, strict=True))
            held = sums[down:, across:] - sums[:-down, across:] - sums[down:, :-across] + sums[:-down, :-across]
            row, column = divmod(int(held.argmax()), held.shape[1])
            yield float(held[row, column]), (slice(row, row + down), slice(column, column + across))


def _blocks(box: Box, block: float) -> int:
    return math.ceil((box.right - box.left) / block) * math.ceil((box.bottom - box.top) / block)


def cells_in(box: Box, shape: Sequence[int]) -> tuple[slice, slice]:
    """The cells of a frame of this shape that lie wholly in a box, as far as they lie in the frame."""
    height, width = shape[:2]
    bottom = box.bottom + PATCH - 1 if box.bottom == height else box.bottom
    right = box.right + PATCH - 1 if box.right == width else box.right
    return slice(-(-box.top // PATCH), bottom // PATCH), slice(-(-box.left // PATCH), right // PATCH)


def _fitted(marked: NDArray[np.bool_], corner: tuple[int, int], shape: Sequence[int], block: float) -> Box | None:
    """What is marked in a window, in whole blocks of ``block`` pixels around its middle, within the frame."""
    ends = []
    for axis, first in enumerate(corner):
        held = np.flatnonzero(marked.any(axis=1 - axis))
        if not len(held):
            return None
        begin, end = PATCH * (first + int(held[0])), PATCH * (first + int(held[-1]) + 1)
        length = min(math.floor(math.ceil((end - begin) / block) * block), shape[axis])
        begin = min(max((begin + end - length) // 2, 0), shape[axis] - length)
        ends.append((begin, begin + length))
    (top, bottom), (left, right) = ends
    return Box(left, top, right, bottom)
