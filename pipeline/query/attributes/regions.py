"""Connected regions of one colour over the Grid: how large they are, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.cache import Map
from foveate.pipeline.geometry import Geometry, Mask

PRESENT = 0.25
"""Share of a cell that a colour must have to be counted among the colours of its regions."""


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """The regions of one colour: cells of it that touch, also at corners. Region 0 is all that has another colour."""

    label: NDArray[np.int32]  # [grid]: which region
    boxes: NDArray[np.int32]  # [regions, 4]: left, top, width, height
    cells: NDArray[np.int32]  # [regions]

    def box(self, region: int) -> tuple[slice, slice]:
        """Rows and columns of one region."""
        left, top, width, height = self.boxes[region].tolist()
        return slice(top, top + height), slice(left, left + width)

    def mask(self, region: int) -> Mask:
        """bool[box]: the cells of one region."""
        return self.label[self.box(region)] == region


def regions(shares: Map, geometry: Geometry) -> list[Regions]:
    """Those of every colour that there is, of float32[colours, grid]: each colour's share of each cell."""
    found = []
    for present in ((shares >= PRESENT) & geometry.inside).view(np.uint8):
        if present.any():
            _, label, stats, _ = cv2.connectedComponentsWithStats(present, connectivity=8, ltype=cv2.CV_32S)
            found.append(Regions(np.asarray(label, np.int32), stats[:, :4], stats[:, cv2.CC_STAT_AREA]))
    return found


def sizes(found: Sequence[Regions], geometry: Geometry) -> tuple[Map, Map]:
    """Sizes of the smallest and the largest region that each cell lies in: float32[grid] each.

    1 + log2(cells in the region / cells in the picture) / 13, at least 0: a 2,048th of the picture has 0.15, a
    hundredth 0.49, a tenth 0.74, all 1. Where there is none, 1 and 0.
    """
    smallest, largest = np.ones(geometry.grid, np.float32), np.zeros(geometry.grid, np.float32)
    for colour in found:
        share = np.maximum(colour.cells, 1) / np.float32(geometry.cells)
        size = np.maximum(1 + np.log2(share) / np.float32(13), 0).astype(np.float32)
        for most, neutral, so_far in ((np.minimum, 1, smallest), (np.maximum, 0, largest)):
            size[0] = neutral
            most(so_far, size[colour.label], out=so_far)
    return smallest, largest
