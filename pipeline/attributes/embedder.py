"""The attributes of each cell as embedding channels: what pixels tell, what moves, and how large a thing is."""

from __future__ import annotations

from typing import Final

import numpy as np

from foveate.pipeline.attributes.colours import NAMES, PIXEL_CHANNELS
from foveate.pipeline.attributes.moving import Motion
from foveate.pipeline.attributes.regions import regions, sizes
from foveate.pipeline.attributes.vocabulary import LARGEST, MOVING, SMALLEST, TEXT
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.native.regions import Regions
from foveate.pipeline.query.encoder import Embedded, EmbedderInput
from foveate.pipeline.query.terms import COEFFICIENTS

PIXEL_ATTRIBUTES: Final = {**{index: f"{EMBEDDING}{index}" for index in range(PIXEL_CHANNELS)}, TEXT: "text"}
"""Coefficients that pixels tell by themselves: the names of their maps in EmbedderInput.grid."""
REGION_ATTRIBUTES: Final = frozenset({MOVING, SMALLEST, LARGEST})
"""Coefficients that need the regions of the picture, and so all of its colours."""


class AttributesEmbedder:
    """See foveate.pipeline.query.encoder.Embedder. The coefficients lie where vocabulary.py says."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._coefficients = np.zeros((COEFFICIENTS, *geometry.grid), np.float32)
        self._motion = Motion(geometry)
        self._made: frozenset[int] = frozenset()  # coefficients that are the last frame's
        self._regions: Regions | None = None  # the last frame's, where they were needed
        self.settled = False

    def update(self, view: EmbedderInput) -> Embedded:
        """See Embedder. The coefficients are overwritten by the next frame's."""
        changed = bool(view.changed.any())
        if changed or view.keyframe is not None:
            self._made, self._regions = frozenset(), None
        self._motion.follow(view)
        self._make(view, view.wanted - self._made)
        self._made = (self._made | view.wanted) - {MOVING}
        self.settled = not changed and self._motion.rests
        return Embedded(self._coefficients, 0)

    def _make(self, view: EmbedderInput, due: frozenset[int]) -> None:
        mine = self._coefficients
        for index in due & PIXEL_ATTRIBUTES.keys():
            mine[index] = view.grid[PIXEL_ATTRIBUTES[index]]
        if due & {SMALLEST, LARGEST}:
            mine[SMALLEST], mine[LARGEST] = sizes(self._regions_of(view), self._geometry)
        if MOVING in due:
            mine[MOVING] = self._motion.shown(lambda: self._regions_of(view))

    def _regions_of(self, view: EmbedderInput) -> Regions:
        if self._regions is None:
            self._regions = regions([view.grid[PIXEL_ATTRIBUTES[index]] for index in range(len(NAMES))], self._geometry)
        return self._regions

    def close(self) -> None:
        """Nothing runs."""
