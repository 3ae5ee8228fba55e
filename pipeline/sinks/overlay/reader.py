"""What a model sees that is given the tokens, and how near that comes to the frame."""

import math
from typing import NamedTuple

import cv2

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.selection.painting import Interpolation
from foveate.pipeline.sinks.overlay.layout import Image


class Seen(NamedTuple):
    """The reader's picture after one frame."""

    picture: Image  # at the frame's size
    psnr: float  # dB, over R'G'B'; infinite where the picture is the frame


class ReaderView:
    """Follows the Selections of one stream, in order; each must hold its patches.

    With memory "frame" only the tokens of the frame itself show, with memory "stream" all since the last scene cut,
    change of size, or jump in time: the reader's picture as the engine assumes it.
    """

    def __init__(self, header: Header) -> None:
        allocation = header.config.get("allocation", {})
        self.remembers = allocation.get("memory") == "stream"
        self._interpolation: Interpolation = allocation.get("interpolation", "bilinear")
        self._held: Image | None = None

    def follow(self, selection: Selection) -> Image:
        """The picture after ``selection``: uint8[height, width, 3], R'G'B', not to be written to."""
        painted = selection.paint(self._held, interpolation=self._interpolation)
        self._held = painted if self.remembers else None
        return painted

    def see(self, frame: FrameView, selection: Selection) -> Seen:
        """The picture after ``selection``, against the ``frame`` that it was chosen from."""
        picture = self.follow(selection)
        return Seen(picture, psnr(picture, frame.rgb()))


def psnr(one: Image, other: Image) -> float:
    """Peak signal-to-noise ratio in dB of two pictures uint8[height, width, 3]; infinite for equal ones."""
    squares = cv2.norm(one, other, cv2.NORM_L2SQR)
    return math.inf if squares == 0 else 10 * math.log10(255**2 * one.size / squares)
