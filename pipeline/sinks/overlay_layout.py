"""Where things lie on the overlay: a legend above, the picture on the left, the score map on the right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]  # [height, width, 3], R'G'B'
Map = NDArray[np.uint8]  # [height, width]

SMALL: Final = 320  # pictures up to this width are enlarged, so that the drawing stays legible
ENLARGED: Final = 640  # to at most this many pixels, width and height
WIDEST: Final = (958, 958)  # a panel is never larger: the canvas fits a Full HD screen, and encoding stays cheap
GAP: Final = 4  # pixels between legend and panels, and between the panels


class Box(NamedTuple):
    """A rectangle of the canvas, in pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def slices(self) -> tuple[slice, slice]:
        """Rows and columns, to index an image."""
        return slice(self.y, self.y + self.height), slice(self.x, self.x + self.width)


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes in pixels, fixed for the whole stream. The canvas has even sides, as 4:2:0 needs."""

    width: int
    height: int
    font: float  # OpenCV's font scale
    legend: Box
    picture: Box
    score: Box


def layout_for(width: int, height: int) -> Layout:
    """The layout for pictures of ``width`` x ``height``."""
    panel_width, panel_height = _panel(width, height)
    half = (max(panel_width, ENLARGED) + 1) // 2 * 2  # a half holds a panel and its share of the legend
    canvas_width = 2 * half + GAP
    font = min(max(canvas_width / 2600, 0.5), 1.0)
    strip = round(120 * font) // 2 * 2
    middle = (half - panel_width) // 2
    return Layout(
        width=canvas_width,
        height=strip + GAP + (panel_height + 1) // 2 * 2,
        font=font,
        legend=Box(0, 0, canvas_width, strip),
        picture=Box(middle, strip + GAP, panel_width, panel_height),
        score=Box(half + GAP + middle, strip + GAP, panel_width, panel_height),
    )


def fitted(width: int, height: int, box: Box) -> Box:
    """The largest rectangle of the picture's shape inside ``box``, centred: bars fill the rest."""
    scale = min(box.width / width, box.height / height)
    inner = max(1, round(width * scale)), max(1, round(height * scale))
    return Box(box.x + (box.width - inner[0]) // 2, box.y + (box.height - inner[1]) // 2, *inner)


def _panel(width: int, height: int) -> tuple[int, int]:
    if width <= SMALL and max(width, height) <= ENLARGED:
        factor = ENLARGED // max(width, height)
        return width * factor, height * factor
    scale = min(1.0, WIDEST[0] / width, WIDEST[1] / height)
    return max(1, round(width * scale)), max(1, round(height * scale))
