"""Pictures of a frame for models that take only pictures: the whole at a small size, and sharp parts of what was asked.

A picture of W x H pixels costs ceil(W / s) * ceil(H / s) language-model tokens, where s * s are the pixels that a
token stands for: 28 * 28 with Qwen2-VL and Qwen2.5-VL (patches of 14 pixels, merged by 2), 32 * 32 with Qwen3-VL. Sizes
are whole multiples of s where the budget decides them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH, Selection

PIXELS: Final = 32 * 32
"""Pixels that a language-model token stands for, if nothing else is said."""
MOST_CROPS: Final = 3
_QUALITY: Final = 90  # of JPEG, of 100
_THUMBNAIL: Final = 0.25  # least share of the budget that the whole picture gets beside sharp parts
_FINEST_LODS: Final = 1  # tokens up to this LOD say where the parts lie
_FAINT: Final = 0.1  # what takes part less than this, at most, is no reason for a part
_SHARE: Final = 0.5  # of the highest participation; tokens with less do not count
_HELD: Final = 0.5  # share of what is asked for that the parts must hold, or else the whole picture serves better
_SLIMMEST: Final = 4  # the longer side of what a part is looked for in, by the shorter one
_NEAR: Final = 0.25  # of the picture's longer side: beyond this distance from the gaze nothing counts

Map = NDArray[np.float32]


class Box(NamedTuple):
    """A part of a frame, in pixels."""

    left: int
    top: int
    right: int  # the first column behind it
    bottom: int  # the first row below it


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture to be sent."""

    rgb: NDArray[np.uint8]  # [height, width, 3], R'G'B'
    box: tuple[int, int, int, int] | None  # left, top, right, bottom, in thousandths of the frame; None: all of it
    tokens: int  # of the language model

    def jpeg(self) -> bytes:
        """As a file."""
        done, coded = cv2.imencode(".jpg", self.rgb[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
        assert done
        return coded.tobytes()


def tokens_of(width: int, height: int, pixels_per_token: int = PIXELS) -> int:
    """Language-model tokens of a picture, by the formula above."""
    side = math.sqrt(pixels_per_token)
    return math.ceil(width / side) * math.ceil(height / side)


def pictures_of(
    selection: Selection,
    budget: int,
    rgb: NDArray[np.uint8] | None = None,
    *,
    gaze: tuple[float, float] | None = None,
    pixels_per_token: int = PIXELS,
) -> list[Picture]:
    """What to send of a frame for at most ``budget`` language-model tokens.

    Without a query or a ``gaze``, (x, y) in pixels, that is the frame, made smaller where the budget asks for it. With
    one, it is a thumbnail and at most three parts at the frame's own resolution, where the tokens of LOD 0 and 1 with
    the highest participation, or those nearest to the gaze, cluster. There are no parts where nothing stands out, where
    less than half of what does would fit, and where the whole frame fits.

    ``rgb``, uint8[height, width, 3] in R'G'B', is the frame; by default what the Selection's patches paint.

    Raises ValueError for a budget or ``pixels_per_token`` below 1, for ``rgb`` of another shape, and without patches
    and ``rgb``.
    """
    if budget < 1 or pixels_per_token < 1:
        raise ValueError(f"budget and pixels_per_token must be at least 1, got {budget} and {pixels_per_token}")
    frame = selection.paint() if rgb is None else rgb
    if frame.shape != (selection.height, selection.width, 3):
        raise ValueError(f"rgb must be of shape {(selection.height, selection.width, 3)}, got {frame.shape}")
    if tokens_of(selection.width, selection.height, pixels_per_token) <= budget:
        return [_whole(frame, budget, pixels_per_token)]
    least = _whole(frame, max(1, round(budget * _THUMBNAIL)), pixels_per_token)
    boxes = _parts(_interest(selection, gaze), frame.shape, budget - least.tokens, pixels_per_token)
    crops = [_crop(frame, box, pixels_per_token) for box in boxes]
    return [_whole(frame, budget - sum(crop.tokens for crop in crops), pixels_per_token), *crops]


def _whole(frame: NDArray[np.uint8], budget: int, pixels_per_token: int) -> Picture:
    """All of the frame, never enlarged."""
    height, width, _ = frame.shape
    tokens = tokens_of(width, height, pixels_per_token)
    if tokens <= budget:
        return Picture(frame, None, tokens)
    side = math.sqrt(pixels_per_token)
    rows, columns = _blocks(height / width, budget)
    size = max(1, math.floor(columns * side)), max(1, math.floor(rows * side))
    return Picture(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), None, rows * columns)  # type: ignore[arg-type]


def _blocks(aspect: float, budget: int) -> tuple[int, int]:
    """Rows and columns of a picture of about this aspect, height / width, with the most blocks within the budget."""
    best = (1, 1)
    for rows in range(1, math.isqrt(math.ceil(budget * aspect)) + 2):
        for columns in (math.floor(rows / aspect), math.ceil(rows / aspect)):
            if best[0] * best[1] < rows * columns <= budget:
                best = rows, columns
    return best


def _interest(selection: Selection, gaze: tuple[float, float] | None) -> Map:
    """How much each cell is asked for, float32[grid]; zeros where nothing is."""
    rows, columns = selection.grid
    interest = np.zeros((rows, columns), np.float32)
    if gaze is not None:
        y, x = np.mgrid[:rows, :columns] * PATCH + PATCH / 2
        distance = np.hypot(x - gaze[0], y - gaze[1]) / (_NEAR * max(selection.width, selection.height))
        return np.maximum(1 - distance, 0).astype(np.float32)
    if selection.participation is None:
        return interest
    fine = selection.lod <= _FINEST_LODS
    highest = selection.participation[fine].max(initial=0)
    counted = fine & (selection.participation >= _SHARE * highest)
    if highest < _FAINT:
        return interest
    for index in np.flatnonzero(counted):
        cells = 1 << int(selection.lod[index])
        row, column = (
            (int(centre) - cells * PATCH // 2) // PATCH for centre in (selection.y[index], selection.x[index])
        )
        covered = interest[max(row, 0) : row + cells, max(column, 0) : column + cells]
        np.maximum(covered, selection.participation[index], out=covered)
    return interest


def _parts(interest: Map, shape: Sequence[int], budget: int, pixels_per_token: int) -> list[Box]:
    """The one to MOST_CROPS boxes that hold the most interest for the budget; none where that is less than half."""
    best: list[Box] = []
    most = 0.0  # sum of the interest of all cells in the boxes
    for count in range(1, MOST_CROPS + 1):
        left, rest, boxes, held = budget, interest.copy(), list[Box](), 0.0
        for after in reversed(range(count)):
            box, sum_ = _window(rest, shape, left // (after + 1), pixels_per_token)
            if box is None:
                break
            boxes.append(box)
            held += sum_
            left -= tokens_of(box.right - box.left, box.bottom - box.top, pixels_per_token)
            rest[_cells(box)] = 0
        if held > most:
            best, most = boxes, held
    return best if most >= _HELD * float(interest.sum()) else []


def _window(interest: Map, shape: Sequence[int], budget: int, pixels_per_token: int) -> tuple[Box | None, float]:
    """The box of at most ``budget`` tokens that holds the most interest, the smallest of equals, and how much it is."""
    side = math.sqrt(pixels_per_token)
    sums = cv2.integral(interest)
    best: tuple[float, float, Box | None] = (0.0, 0.0, None)
    for rows in range(1, budget + 1):
        columns = min(budget // rows, _SLIMMEST * rows)
        if rows > _SLIMMEST * columns:
            break
        high, wide = (min(math.floor(n * side), limit) for n, limit in zip((rows, columns), shape, strict=False))
        down, across = (min(max(1, n // PATCH), limit) for n, limit in zip((high, wide), interest.shape, strict=True))
        held = sums[down:, across:] - sums[:-down, across:] - sums[down:, :-across] + sums[:-down, :-across]
        row, column = np.unravel_index(int(held.argmax()), held.shape)
        box = _fitted(interest[row : row + down, column : column + across], (int(row), int(column)), shape, side)
        if box is None:
            continue
        size = -float(tokens_of(box.right - box.left, box.bottom - box.top, pixels_per_token))
        if (float(held[row, column]), size) > best[:2] and -size <= budget:
            best = float(held[row, column]), size, box
    return best[2], best[0]


def _fitted(window: Map, corner: tuple[int, int], shape: Sequence[int], side: float) -> Box | None:
    """The interest in a window, in whole blocks of ``side`` pixels around its middle, within the picture."""
    ends = []
    for axis, first in enumerate(corner):
        held = np.flatnonzero(window.any(axis=1 - axis))
        if not len(held):
            return None
        begin, end = PATCH * (first + int(held[0])), PATCH * (first + int(held[-1]) + 1)
        length = min(math.floor(math.ceil((end - begin) / side) * side), shape[axis])
        begin = min(max((begin + end - length) // 2, 0), shape[axis] - length)
        ends.append((begin, begin + length))
    (top, bottom), (left, right) = ends
    return Box(left, top, right, bottom)


def _cells(box: Box) -> tuple[slice, slice]:
    """The cells that lie in a box, in part or wholly."""
    return slice(box.top // PATCH, -(-box.bottom // PATCH)), slice(box.left // PATCH, -(-box.right // PATCH))


def _crop(frame: NDArray[np.uint8], box: Box, pixels_per_token: int) -> Picture:
    height, width, _ = frame.shape
    part = np.ascontiguousarray(frame[box.top : box.bottom, box.left : box.right])
    ends = zip(box, (width, height) * 2, strict=True)
    thousandths = tuple(round(1000 * end / whole) for end, whole in ends)
    return Picture(part, thousandths, tokens_of(part.shape[1], part.shape[0], pixels_per_token))
