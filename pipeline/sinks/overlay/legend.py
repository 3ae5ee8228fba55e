"""The legend above the panels: which frame, how many tokens of each LOD, how much was recomputed."""

import unicodedata
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import cv2
import numpy as np

from foveate.pipeline.selection import PATCH, Header, Selection
from foveate.pipeline.selection.drawing import COLOURS, LODS
from foveate.pipeline.sinks.overlay.heat import colour_ramp
from foveate.pipeline.sinks.overlay.layout import Image

Colour = tuple[int, int, int]

BACKGROUND: Final[Colour] = (18, 20, 26)
_BRIGHT: Final[Colour] = (236, 238, 242)
_DULL: Final[Colour] = (148, 154, 166)
_TRACK: Final[Colour] = (52, 56, 66)
_BADGE: Final[Colour] = (232, 72, 85)
_BAR: Final[Colour] = (96, 156, 236)
_RAMP: Final = colour_ramp()


class Pen:
    """Writes items from left to right on one line of an image, in place."""

    def __init__(self, image: Image, x: float, baseline: float, font: float) -> None:
        self._image = image
        self._x = round(x)
        self._baseline = round(baseline)
        self._font = font
        self._capital = round(20 * font)  # height of a capital letter in pixels, about

    def text(self, text: str, colour: Colour, gap: float = 16) -> None:
        """Write ``text``; ``gap`` is the space after it, in pixels at font scale 1."""
        face, at = cv2.FONT_HERSHEY_SIMPLEX, (self._x, self._baseline)
        cv2.putText(self._image, text, at, face, self._font, colour, 1, cv2.LINE_AA)
        self._x += self._measure(text) + round(gap * self._font)

    def number(self, label: str, value: str, room: str, gap: float = 28) -> None:
        """Write a dull label and a bright value; ``room`` is the longest value, so that what follows stays in place."""
        self.text(label, _DULL, gap=10)
        self.text(value, _BRIGHT, gap=0)
        self._x += max(0, self._measure(room) - self._measure(value)) + round(gap * self._font)

    def chip(self, colour: Colour) -> None:
        """Fill a square."""
        self._fill(self._capital, colour)
        self._x += self._capital + round(8 * self._font)

    def badge(self, text: str) -> None:
        """Write ``text`` on a coloured ground."""
        pad = round(10 * self._font)
        self._fill(self._measure(text) + 2 * pad, _BADGE, margin=round(8 * self._font))
        self._x += pad
        self.text(text, (255, 255, 255))

    def bar(self, share: float, width: float) -> None:
        """Fill ``share`` of a bar ``width`` pixels long at font scale 1."""
        pixels = round(width * self._font)
        self._fill(pixels, _TRACK)
        if share > 0:
            self._fill(max(1, round(min(share, 1.0) * pixels)), _BAR)
        self._x += pixels + round(40 * self._font)

    def ramp(self, width: float) -> None:
        """Draw the score map's colours, ``width`` pixels long at font scale 1."""
        pixels = round(width * self._font)
        area = self._image[self._baseline - self._capital : self._baseline, self._x : self._x + pixels]
        if area.size:
            area[:] = cv2.resize(_RAMP, (area.shape[1], 1), interpolation=cv2.INTER_AREA)
        self._x += pixels + round(14 * self._font)

    def _fill(self, width: int, colour: Colour, margin: int = 0) -> None:
        first = (self._x, self._baseline - self._capital - margin)
        last = (self._x + width - 1, self._baseline - 1 + margin)
        cv2.rectangle(self._image, first, last, colour, cv2.FILLED)

    def _measure(self, text: str) -> int:
        return int(cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, self._font, 1)[0][0])


def draw_legend(image: Image, selection: Selection, budget: int | None, query: str, top: float, font: float) -> None:
    """Paint the legend over ``image``, in place. ``top`` is the score shown in the brightest colour."""
    image[:] = BACKGROUND
    first, second, third = 44 * font, 94 * font, 144 * font  # baselines
    left, right = 18 * font, image.shape[1] / 2 + 18 * font
    _frame_line(Pen(image, left, first, font), selection, budget)
    _lod_line(Pen(image, left, second, font), selection)
    _work_line(Pen(image, right, first, font), selection)
    pen = Pen(image, right, second, font)
    pen.text("score   0", _DULL, gap=14)
    pen.ramp(420)
    pen.text(f"{top:.2f}", _BRIGHT)
    pen = Pen(image, left, third, font)
    pen.text("query", _DULL, gap=10)
    pen.text(_plain(query) or "none", _BRIGHT if query else _DULL)


def draw_caption(image: Image, text: str, font: float) -> None:
    """Write the caption of a panel into ``image``, in place."""
    Pen(image, 18 * font, 30 * font, 0.9 * font).text(text, _DULL)


def _plain(text: str) -> str:
    """What OpenCV's font can write, which has ASCII alone: accents are removed, other characters become "?"."""
    bare = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
    return bare.encode("ascii", "replace").decode()


def _frame_line(pen: Pen, selection: Selection, budget: int | None) -> None:
    most = "" if budget is None else f" / {budget}"
    pen.number("frame", str(selection.index), "00000")
    pen.number("time", f"{selection.time:.3f} s", "000.000 s")
    pen.number("tokens", f"{len(selection)}{most}", f"{len(selection)}{most}")
    if selection.keyframe is not None:
        pen.badge(f"keyframe: {selection.keyframe}")


def _lod_line(pen: Pen, selection: Selection) -> None:
    counts = np.bincount(np.minimum(selection.lod, LODS - 1), minlength=LODS)
    coarser = int(selection.lod.max(initial=0)) >= LODS
    for lod in range(LODS):
        red, green, blue = COLOURS[lod].tolist()
        pen.chip((red, green, blue))
        more = "+" if coarser and lod == LODS - 1 else ""
        pen.number(f"{PATCH * 2**lod}{more} px", str(counts[lod]), "000", gap=24)


def _work_line(pen: Pen, selection: Selection) -> None:
    for label, share in (("changed", selection.changed), ("recomputed", selection.recomputed)):
        pen.number(label, f"{share:.1%}", "100.0%", gap=12)
        pen.bar(share, 120)


class QueryText:
    """The query of one stream, which may change from frame to frame."""

    def __init__(self, header: Header) -> None:
        pictures = [f"picture {PurePath(name).name}" for name in header.config.get("query_image", ())]
        self._text = _query_line([*header.config.get("query", ()), *pictures], header.ignored)

    def of(self, selection: Selection) -> str:
        """The query of ``selection`` as text; "" without one."""
        changed = selection.extras.get("query")
        if changed is not None:
            self._text = _query_line(changed, selection.extras.get("query_ignored", ()))
        return self._text


def _query_line(queries: Sequence[str], ignored: Sequence[str]) -> str:
    """The queries, after the words that are ignored; a long line is cut at its end."""
    return (f"(ignored: {', '.join(ignored)}) " if ignored else "") + ", ".join(queries)
