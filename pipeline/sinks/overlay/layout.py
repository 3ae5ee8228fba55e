"""The layout of the overlay: a legend above four panels, each under a caption.

The panels are the picture with its tokens, the score map, what the model sees, and the figures over time: two above
two, or, for pictures that are higher than wide, all in a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]  # [height, width, 3], R'G'B'
Map = NDArray[np.uint8]  # [height, width]

SMALL: Final = 320  # pictures up to this width are enlarged, so that the drawing stays legible
ENLARGED: Final = 640  # to at most this many pixels, width and height
WIDEST: Final = {2: (958, 958), 4: (476, 958)}  # a panel is never larger, by the number of columns: 1920 pixels in all
LOWEST: Final = 120  # pixels; a panel has at least so much room, for the chart
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


class Panel(NamedTuple):
    """A caption, and what is shown below it."""

    caption: Box
    box: Box


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes in pixels, fixed for the whole stream. The canvas has even sides, as 4:2:0 needs."""

    width: int
    height: int
    font: float  # OpenCV's font scale
    legend: Box
    picture: Panel
    score: Panel
    reader: Panel
    history: Panel


def layout_for(width: int, height: int) -> Layout:
    """The layout for pictures of ``width`` x ``height``."""
    columns = 2 if width >= height else 4
    panel_width, panel_height = _panel(width, height, columns)
    column = (max(panel_width, ENLARGED * 2 // columns) + 1) // 2 * 2  # holds a panel and its share of the legend
    canvas_width = columns * (column + GAP) - GAP
    font = min(max(canvas_width / 2600, 0.5), 1.0)
    strip, caption = round(170 * font) // 2 * 2, round(44 * font) // 2 * 2
    row = caption + (max(panel_height, LOWEST) + 1) // 2 * 2 + GAP

    def panel(number: int, wide: int, high: int) -> Panel:
        x, y = number % columns * (column + GAP), strip + GAP + number // columns * row
        return Panel(Box(x, y, column, caption), Box(x + (column - wide) // 2, y + caption, wide, high))

    return Layout(
        width=canvas_width,
        height=strip + 4 // columns * row,
        font=font,
        legend=Box(0, 0, canvas_width, strip),
        picture=panel(0, panel_width, panel_height),
        score=panel(1, panel_width, panel_height),
        reader=panel(2, panel_width, panel_height),
        history=panel(3, column, max(panel_height, LOWEST)),
    )


def fitted(width: int, height: int, box: Box) -> Box:
    """The largest rectangle of the picture's shape inside ``box``, centred: bars fill the rest."""
    scale = min(box.width / width, box.height / height)
    inner = max(1, round(width * scale)), max(1, round(height * scale))
    return Box(box.x + (box.width - inner[0]) // 2, box.y + (box.height - inner[1]) // 2, *inner)


def _panel(width: int, height: int, columns: int) -> tuple[int, int]:
    most = WIDEST[columns]
    if width <= SMALL and max(width, height) <= ENLARGED:
        factor = min(ENLARGED // max(width, height), most[0] // width)
        return width * factor, height * factor
    scale = min(1.0, most[0] / width, most[1] / height)
    return max(1, round(width * scale)), max(1, round(height * scale))
