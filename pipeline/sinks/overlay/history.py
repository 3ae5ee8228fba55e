"""The figures over time: tokens of each frame as bars, the reader's PSNR as a line, keyframes as ticks."""

import math
from collections import deque
from typing import Final, NamedTuple

import cv2
import numpy as np

from foveate.pipeline.selection import Selection
from foveate.pipeline.sinks.overlay.layout import Image

FRAMES: Final = 240  # shown at a time
_LEAST, _MOST = 10.0, 50.0  # dB, the PSNR scale's ends
_BAR: Final = (58, 88, 132)
_LINE: Final = (255, 196, 92)
_KEYFRAME: Final = (232, 72, 85)
_RULE: Final = (52, 56, 66)
_TEXT: Final = (196, 202, 214)


class _Point(NamedTuple):
    tokens: int
    psnr: float
    keyframe: bool


class History:
    """The latest frames of one stream."""

    def __init__(self, budget: int | None) -> None:
        self._points: deque[_Point] = deque(maxlen=FRAMES)
        self._budget = budget

    def add(self, selection: Selection, psnr: float) -> None:
        """Append one frame."""
        self._points.append(_Point(len(selection), psnr, selection.keyframe is not None))

    def draw(self, image: Image, font: float) -> None:
        """Draw the chart over ``image``, in place; the newest frame is at its right edge."""
        height, width = image.shape[:2]
        top = max(self._budget or 0, *(point.tokens for point in self._points), 1)
        for share in (0.25, 0.5, 0.75):
            cv2.line(image, (0, round(share * height)), (width, round(share * height)), _RULE)
        step = width / FRAMES
        start = width - step * len(self._points)
        for i, point in enumerate(self._points):
            left, right = round(start + i * step), round(start + (i + 1) * step)
            bar = round(point.tokens / top * (height - 1))
            image[height - bar :, left : max(left + 1, right - (step > 2))] = _BAR
            if point.keyframe:
                image[: max(4, height // 16), left : left + 2] = _KEYFRAME
        cv2.polylines(image, [self._line(start, step, height)], False, _LINE, 1, cv2.LINE_AA)
        self._scales(image, top, font)

    def _line(self, start: float, step: float, height: int) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
        shares = [(min(point.psnr, _MOST) - _LEAST) / (_MOST - _LEAST) for point in self._points]
        points = [(start + (i + 0.5) * step, (1 - max(share, 0)) * (height - 1)) for i, share in enumerate(shares)]
        return np.rint(np.array(points).reshape(-1, 2)).astype(np.int32)

    @staticmethod
    def _scales(image: Image, top: int, font: float) -> None:
        height, width = image.shape[:2]
        for share in (0.25, 0.5, 0.75):
            level = round(share * height) - 4
            decibels = f"{_MOST - share * (_MOST - _LEAST):.0f} dB"
            _write(image, f"{round((1 - share) * top)}", 6, level, 0.9 * font)
            measured = cv2.getTextSize(decibels, cv2.FONT_HERSHEY_SIMPLEX, 0.9 * font, 1)[0][0]
            _write(image, decibels, width - measured - 6, level, 0.9 * font)


def _write(image: Image, text: str, x: int, y: int, font: float) -> None:
    cv2.putText(image, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, font, _TEXT, 1, cv2.LINE_AA)


def in_decibels(psnr: float) -> str:
    """A PSNR as text."""
    return "exact" if math.isinf(psnr) else f"{psnr:.1f} dB"
