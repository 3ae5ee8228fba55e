"""Connected regions of one colour over the Grid: how large they are, and where."""

from collections.abc import Sequence

import numpy as np

from foveate.pipeline.geometry import Geometry, Map
from foveate.pipeline.native.regions import Regions, extreme_sizes, label_regions

PRESENT = 0.25
"""Share of a cell that a colour must have to be counted among the colours of its regions."""


def regions(shares: Sequence[Map] | Map, geometry: Geometry) -> Regions:
    """Those of every colour, of float32[grid] each: the colour's share of each cell."""
    return label_regions(list(shares), geometry.inside, PRESENT)


def sizes(found: Regions, geometry: Geometry) -> tuple[Map, Map]:
    """Sizes of the smallest and the largest region that each cell lies in: float32[grid] each.

    1 + log2(cells in the region / cells in the picture) / 13, at least 0: a 2,048th of the picture has 0.15, a
    hundredth 0.49, a tenth 0.74, all 1. Where there is none, 1 and 0.
    """
    share = np.maximum(found.cells, 1) / np.float32(geometry.cells)
    return extreme_sizes(found, np.maximum(1 + np.log2(share) / np.float32(13), 0).astype(np.float32))
