"""Connected regions of one colour over the Grid: how large they are, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from foveate.pipeline.cascade.cache import Map
from foveate.pipeline.geometry import Geometry, Mask

PRESENT = 0.25
"""Share of a cell that a colour must have to be counted among the colours of its regions."""


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Cells of one colour that touch, also at corners."""

    box: tuple[slice, slice]  # rows and columns of the Grid
    mask: Mask  # bool[box]: its cells
    cells: int


def regions(shares: Map, geometry: Geometry) -> list[Region]:
    """All regions of float32[colours, grid]: each colour's share of each cell."""
    found = []
    for share in shares:
        present = ((share >= PRESENT) & geometry.inside).astype(np.uint8)
        if not present.any():
            continue
        _, labels, boxes, _ = cv2.connectedComponentsWithStats(present, connectivity=8, ltype=cv2.CV_32S)
        for label, (left, top, width, height, cells) in enumerate(boxes[1:].tolist(), 1):
            box = slice(top, top + height), slice(left, left + width)
            found.append(Region(box, labels[box] == label, cells))
    return found


def sizes(found: Sequence[Region], geometry: Geometry) -> tuple[Map, Map]:
    """Sizes of the smallest and the largest region that each cell lies in: float32[grid] each.

    1 + log2(cells in the region / cells in the picture) / 13, at least 0: a 2,048th of the picture has 0.15, a
    hundredth 0.49, a tenth 0.74, all 1. Where there is none, 1 and 0.
    """
    smallest, largest = np.ones(geometry.grid, np.float32), np.zeros(geometry.grid, np.float32)
    for region in found:
        size = np.float32(max(1 + np.log2(region.cells / geometry.cells) / 13, 0))
        for most, sizes_so_far in ((np.minimum, smallest), (np.maximum, largest)):
            inside = sizes_so_far[region.box]
            most(inside, size, out=inside, where=region.mask)
    return smallest, largest
