"""The attributes of cells that pixels tell by themselves, kept up to date where tiles were written: all maps that the
attributes encoder makes of pixels."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.attributes.colours import tables
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.cpu.background import BackgroundModel
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.native.attributes import COLOUR_LEVEL, COLOURS, STROKE_LEVEL, Found, attributes

Map = NDArray[np.float32]

STROKE_STEP = 0.1
"""Luma difference, of its range, that makes an edge of a letter's stroke."""
MOST_STROKES = 12.0
"""Strokes in a cell, of 8 rows, that make it all text: one and a half in each row."""
RIM = 0.6


class AttributeStack:
    """Named colours, lightness, text, frame differences and foreground, over the Grid."""

    def __init__(self, geometry: Geometry, colour: Colour) -> None:
        rows, columns = geometry.grid
        self._geometry = geometry
        self._tables = tables(colour)
        self._step = stroke_step(colour)
        shares = np.zeros((COLOURS, rows, columns), np.float32)
        self._found = Found(shares, np.zeros((rows, columns), np.float32), np.zeros((rows, columns), np.float32))
        self._background = BackgroundModel(geometry)

    def update(self, levels: Levels, written: Mask, index: int, new_scene: bool) -> None:
        """Recompute them over the tiles ``written`` in frame ``index``, and strokes in the cells beside.

        ``new_scene``: nothing of earlier frames counts.
        """
        luma, cb, cr = (pyramid.level(COLOUR_LEVEL) for pyramid in levels.planes)
        fine = levels.luma.level(STROKE_LEVEL)
        attributes((luma, cb, cr), fine, self._tables, self._step, self._geometry, written, self._found)
        self._background.update(levels, written, index, new_scene)

    @property
    def strokes(self) -> Map:
        """Number of letter strokes that end in each cell, float32[grid]; overwritten by the next update."""
        return self._found.strokes

    def maps(self) -> dict[str, Map]:
        """New float32[grid] maps by name: clip0 .. clip11, text, frame_difference and foreground."""
        maps = {"text": text(self._found.strokes), **self._background.maps()}
        for index, values in enumerate((*self._found.shares.copy(), self._found.light.copy())):
            maps[f"{EMBEDDING}{index}"] = values
        return maps


def stroke_step(colour: Colour) -> float:
    """Luma difference, in 8-bit units, that makes an edge of a stroke."""
    return STROKE_STEP * (255.0 if colour.full_range else 219.0)


def text(strokes: Map) -> Map:
    """Stroke density in [0, 1]: that of the cell, where a cell beside it has as much. float32[grid] each.

    Letters stand in rows; a cell by itself with many thin strokes is a texture or a fence's end. Cells next to text
    have at least RIM of it: they hold the rims of letters.
    """
    density = np.minimum(strokes / np.float32(MOST_STROKES), np.float32(1))
    beside = np.zeros_like(density)
    beside[:, 1:] = density[:, :-1]
    np.maximum(beside[:, :-1], density[:, 1:], out=beside[:, :-1])
    found = np.minimum(density, 2 * beside)
    around = cv2.dilate(found, np.ones((3, 3), np.uint8))
    return np.asarray(np.maximum(found, np.float32(RIM) * around), np.float32)
