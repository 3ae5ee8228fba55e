"""Attributes of cells that follow from pixels alone, updated where tiles are written: colours, lightness, text."""

import cv2
import numpy as np

from foveate.pipeline.attributes.colours import tables
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.cpu.background import BackgroundModel
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import Geometry, Map, Mask
from foveate.pipeline.native.attributes import COLOUR_LEVEL, COLOURS, STROKE_LEVEL, CellAttributes, attributes

STROKE_STEP = 0.1
"""Luma difference, as a share of the range, that counts as an edge of a letter stroke."""
MOST_STROKES = 12.0
"""Strokes in a cell of 8 rows from which on its text density is 1: one and a half per row."""
RIM = 0.6
"""Text density of cells next to text, which hold the borders of letters, as a share of their neighbours'."""


class AttributeStack:
    """Named colours, lightness, text, frame differences and foreground, over the Grid."""

    def __init__(self, geometry: Geometry, colour: Colour) -> None:
        self._geometry = geometry
        self._tables = tables(colour)
        self._step = stroke_step(colour)
        shares, (light, strokes) = (np.zeros((count, *geometry.grid), np.float32) for count in (COLOURS, 2))
        self._found = CellAttributes(shares, light, strokes)
        self._background = BackgroundModel(geometry)

    def update(self, levels: Levels, written: Mask, index: int, new_scene: bool, noise: int = 0) -> None:
        """Recompute them over the tiles ``written`` in frame ``index``, and strokes in the cells beside.

        ``new_scene``: nothing of earlier frames counts. ``noise``: the Update's.
        """
        luma, cb, cr = (pyramid.level(COLOUR_LEVEL) for pyramid in levels.planes)
        fine = levels.luma.level(STROKE_LEVEL)
        attributes((luma, cb, cr), fine, self._tables, self._step, self._geometry, written, self._found)
        self._background.update(levels, written, index, new_scene, noise)

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
    """Luma difference, in 8-bit units, that counts as an edge of a letter stroke."""
    return STROKE_STEP * (255.0 if colour.full_range else 219.0)


def text(strokes: Map) -> Map:
    """Text density in [0, 1], float32[grid], from the strokes of each cell and of the cells beside it.

    Letters form lines, so a single cell with many thin strokes is a texture, and counts at most twice the denser
    neighbour in its row. Cells around text get RIM of its density.
    """
    density = np.minimum(strokes / np.float32(MOST_STROKES), np.float32(1))
    beside = np.zeros_like(density)
    beside[:, 1:] = density[:, :-1]
    np.maximum(beside[:, :-1], density[:, 1:], out=beside[:, :-1])
    found = np.minimum(density, 2 * beside)
    around = cv2.dilate(found, np.ones((3, 3), np.uint8))
    return np.asarray(np.maximum(found, np.float32(RIM) * around), np.float32)
