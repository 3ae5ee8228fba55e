"""A stream's embeddings: encoded in a thread of its own where they are missing or stale, carried along the flow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.encoders.base import ImageTextEncoder
from foveate.pipeline.encoders.pca import COMPONENTS, Projection
from foveate.pipeline.encoders.regions import Region, longest_side, regions
from foveate.pipeline.encoders.slow_maps import SlowMaps
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.encoder import Embedded, EmbedderInput
from foveate.pipeline.settings import ClipSettings

Map = NDArray[np.float32]


class DenseEmbedder:
    """The coefficients of the frames of one size, see pipeline.query.encoder.Embedder.

    Its regions are encoded when slow_maps.SlowMaps says, at the settings' pace.
    """

    def __init__(
        self, encoder: ImageTextEncoder, projection: Projection, settings: ClipSettings, geometry: Geometry
    ) -> None:
        self._encoder = encoder
        self._projection = projection
        self._longest = longest_side(encoder, settings)
        parts = regions(geometry, settings)
        self._maps = SlowMaps(self._encode, COMPONENTS, parts, settings, geometry, "foveate-encoder")

    def update(self, view: EmbedderInput) -> Embedded | None:
        """The coefficients at this frame; None while there are none yet. Raises what the encoder raises."""
        self._maps.update(view)
        made = self._maps.made
        return None if made is None else Embedded(*made)

    @property
    def encoded(self) -> float:
        """Share of the picture's cells whose encoding the last update began."""
        return self._maps.begun

    @property
    def settled(self) -> bool:
        """True where another frame without any change would have the same embeddings: none is on its way."""
        return self._maps.settled

    def close(self) -> None:
        """Wait for the thread to end; what it works on is finished first, and lost. Safe to call twice."""
        self._maps.close()

    def _encode(self, frame: FrameView, due: Sequence[Region]) -> list[Map]:
        """In the thread: coefficients of each region's cells, float32[COMPONENTS, rows, columns]."""
        rgb = picture_rgb(frame)
        found = []
        for region in due:
            crop = region.crop(rgb)
            vectors = self._encoder.encode_image(crop, self._longest)
            found.append(region.at_cells(self._projection.compress(vectors), crop))
        return found
