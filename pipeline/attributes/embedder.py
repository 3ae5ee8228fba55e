"""The attributes of each cell as embedding channels: colours, lightness, text, motion and region sizes."""

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
"""Coefficients computed from a cell's own pixels: the names of their maps in EmbedderInput.grid."""
REGION_ATTRIBUTES: Final = frozenset({MOVING, SMALLEST, LARGEST})
"""Coefficients computed from the colour regions of the picture."""


class AttributesEmbedder:
    """See foveate.pipeline.query.encoder.Embedder. The order of the coefficients is that of vocabulary.py."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._coefficients = np.zeros((COEFFICIENTS, *geometry.grid), np.float32)
        self._motion = Motion(geometry)
        self._current: frozenset[int] = frozenset()  # coefficients that are up to date
        self._regions: Regions | None = None  # the last frame's, if they were needed
        self.settled = False

    def update(self, view: EmbedderInput) -> Embedded:
        """See Embedder. The next frame overwrites the coefficients."""
        changed = bool(view.changed.any())
        if changed or view.keyframe is not None:
            self._current, self._regions = frozenset(), None
        self._motion.update(view)
        self._compute(view, view.wanted - self._current)
        self._current = (self._current | view.wanted) - {MOVING}
        self.settled = not changed and self._motion.still
        return Embedded(self._coefficients, 0)

    def _compute(self, view: EmbedderInput, due: frozenset[int]) -> None:
        coefficients = self._coefficients
        for index in due & PIXEL_ATTRIBUTES.keys():
            coefficients[index] = view.grid[PIXEL_ATTRIBUTES[index]]
        if due & {SMALLEST, LARGEST}:
            coefficients[SMALLEST], coefficients[LARGEST] = sizes(self._regions_of(view), self._geometry)
        if MOVING in due:
            coefficients[MOVING] = self._motion.moving(lambda: self._regions_of(view))

    def _regions_of(self, view: EmbedderInput) -> Regions:
        if self._regions is None:
            self._regions = regions([view.grid[PIXEL_ATTRIBUTES[index]] for index in range(len(NAMES))], self._geometry)
        return self._regions

    def close(self) -> None:
        """There is nothing to stop."""
