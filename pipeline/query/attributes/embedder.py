"""The attributes of each cell as embedding channels: what pixels tell, what moves, and how large a thing is."""

from __future__ import annotations

import numpy as np

from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.cpu.attributes import PIXEL_CHANNELS
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.attributes.colours import NAMES
from foveate.pipeline.query.attributes.moving import Motion
from foveate.pipeline.query.attributes.regions import Regions, regions, sizes
from foveate.pipeline.query.attributes.vocabulary import LARGEST, MOVING, SMALLEST, TEXT
from foveate.pipeline.query.encoder import Embedded, View
from foveate.pipeline.query.program import COEFFICIENTS


class AttributesEmbedder:
    """See foveate.pipeline.query.encoder.Embedder. The coefficients lie where vocabulary.py says."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._coefficients = np.zeros((COEFFICIENTS, *geometry.grid), np.float32)
        self._motion = Motion(geometry)
        self._regions: list[Regions] = []
        self.settled = False

    def update(self, view: View) -> Embedded:
        """See Embedder. The coefficients are overwritten by the next frame's."""
        mine = self._coefficients
        if view.keyframe is not None or view.changed.any():
            for index in range(PIXEL_CHANNELS):
                mine[index] = view.grid[f"{EMBEDDING}{index}"]
            mine[TEXT] = view.grid["text"]
            self._regions = regions(mine[: len(NAMES)], self._geometry)
            mine[SMALLEST], mine[LARGEST] = sizes(self._regions, self._geometry)
        moving = self._motion.update(view, self._regions)
        self.settled = not view.changed.any() and not moving.any()
        mine[MOVING] = moving
        return Embedded(mine, 0)

    def close(self) -> None:
        """Nothing runs."""
