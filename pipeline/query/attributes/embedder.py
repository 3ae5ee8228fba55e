"""The attributes of each cell as embedding channels: what pixels tell, what moves, and how large a thing is."""

from __future__ import annotations

import cv2
import numpy as np

from foveate.pipeline.cascade.cache import Flow, Map
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.cpu.attributes import PIXEL_CHANNELS
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.attributes.colours import NAMES
from foveate.pipeline.query.attributes.vocabulary import LARGEST, MOVING, SMALLEST, TEXT
from foveate.pipeline.query.encoder import Embedded, View
from foveate.pipeline.query.program import COEFFICIENTS

PRESENT = 0.25  # share of a cell that a colour must have to be counted among the colours of its regions

_STILL, _MOVES = 0.015, 0.05  # luma difference, of its range: nothing moves; something does
_SLOW, _FAST = 0.04, 0.15  # cells per frame, against what most of the picture does: the same
_PANS = 0.6  # share of the picture that changes where the camera itself moves
_KEEP = np.float32(0.8)  # of the motion of a frame before


class AttributesEmbedder:
    """See foveate.pipeline.query.encoder.Embedder. The coefficients lie where vocabulary.py says.

    Sizes are those of connected regions of one colour: 1 + log2(cells in the region / cells in the Grid) / 13, at
    least 0: a 2,048th of the picture has 0.15, a hundredth 0.49, a tenth 0.74, all 1. SMALLEST and LARGEST are those of
    the regions that the cell lies in.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._coefficients = np.zeros((COEFFICIENTS, *geometry.grid), np.float32)
        self._moving = np.zeros(geometry.grid, np.float32)
        self._row, self._column = np.indices(geometry.grid, dtype=np.float32)
        self.settled = False

    def update(self, view: View) -> Embedded:
        """See Embedder. The coefficients are overwritten by the next frame's."""
        mine = self._coefficients
        if view.keyframe is not None or view.changed.any():
            for index in range(PIXEL_CHANNELS):
                mine[index] = view.grid[f"{EMBEDDING}{index}"]
            mine[TEXT] = view.grid["text"]
            mine[SMALLEST], mine[LARGEST] = sizes(mine[: len(NAMES)], self._geometry)
        before = self._moving
        self._moving = self._move(view)
        mine[MOVING] = self._moving
        self.settled = not view.changed.any() and np.array_equal(before, self._moving)
        return Embedded(mine, 0)

    def close(self) -> None:
        """Nothing runs."""

    def _move(self, view: View) -> Map:
        """How surely each cell moves, in [0, 1]: what moves now, or has moved a few frames ago."""
        if view.keyframe is not None and view.keyframe != "periodic":
            return np.zeros_like(self._moving)
        now = _motion(view)
        before = self._moving * _KEEP
        before[before < 0.1] = 0
        if view.flow is not None:
            x, y = self._column + view.flow.dx, self._row + view.flow.dy
            before = np.asarray(cv2.remap(before, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))
        return np.maximum(now, before)


def _motion(view: View) -> Map:
    """What moves in this frame: what moves another way than the picture and, where the camera rests, what changes."""
    apart = np.float32(0) if view.flow is None else _ramp(_against_the_rest(view.flow), _SLOW, _FAST) * view.changed
    if view.changed.mean() >= _PANS:
        return apart + np.zeros_like(view.grid["motion"])
    now = np.maximum(_ramp(view.grid["motion"], _STILL, _MOVES), apart)
    # A thing without detail changes at its edges only: what lies between cells that move, moves.
    return np.asarray(cv2.morphologyEx(now, cv2.MORPH_CLOSE, np.ones((3, 3), np.uint8)), np.float32)


def _against_the_rest(flow: Flow) -> Map:
    """How far each cell moves, in cells, beyond the picture's median motion; 0 where the flow is unsure."""
    away = np.hypot(flow.dx - np.median(flow.dx), flow.dy - np.median(flow.dy))
    return np.where(flow.confidence > 0, away, np.float32(0))


def _ramp(values: Map, none: float, full: float) -> Map:
    return np.clip((values - np.float32(none)) / np.float32(full - none), 0, 1)


def sizes(shares: Map, geometry: Geometry) -> tuple[Map, Map]:
    """Of the regions of one colour that each cell lies in, the smallest and largest size: float32[grid] each.

    ``shares`` is float32[colours, grid]; see AttributesEmbedder.
    """
    smallest = np.ones(geometry.grid, np.float32)
    largest = np.zeros(geometry.grid, np.float32)
    for share in shares:
        present = ((share >= PRESENT) & geometry.inside).astype(np.uint8)
        if not present.any():
            continue
        _, labels, found, _ = cv2.connectedComponentsWithStats(present, connectivity=8, ltype=cv2.CV_32S)
        area = found[:, cv2.CC_STAT_AREA].astype(np.float32) / np.float32(geometry.cells)
        size = np.maximum(1 + np.log2(area) / np.float32(13), 0)[labels]
        inside = present > 0
        np.minimum(smallest, size, out=smallest, where=inside)
        np.maximum(largest, size, out=largest, where=inside)
    return smallest, largest
