"""Dense embeddings of a stream: encoded in a thread where missing or stale, and warped along the flow."""

from collections.abc import Sequence

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.encoders.async_maps import AsyncMaps
from foveate.pipeline.encoders.crops import Crop, crops, longest_side
from foveate.pipeline.encoders.image_text import ImageTextEncoder
from foveate.pipeline.encoders.pca import COMPONENTS, Projection
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry, Map
from foveate.pipeline.query.encoder import Embedded, EmbedderInput
from foveate.pipeline.settings import ClipSettings


class DenseEmbedder:
    """See pipeline.query.encoder.Embedder.

    async_maps.AsyncMaps decides when a crop is encoded, at the settings' pace.
    """

    def __init__(
        self, encoder: ImageTextEncoder, projection: Projection, settings: ClipSettings, geometry: Geometry
    ) -> None:
        self._encoder = encoder
        self._projection = projection
        self._longest = longest_side(encoder, settings)
        parts = crops(geometry, settings)
        self._maps = AsyncMaps(self._encode, COMPONENTS, parts, settings, geometry, "foveate-encoder")

    def update(self, view: EmbedderInput) -> Embedded | None:
        """The coefficients at this frame; None while there are none. Raises what the encoder raises."""
        self._maps.update(view)
        made = self._maps.made
        return None if made is None else Embedded(*made)

    @property
    def encoded(self) -> float:
        """Share of the picture's cells that the last update submitted for encoding."""
        return self._maps.begun

    @property
    def settled(self) -> bool:
        """True if another frame without any change would have the same embeddings: no encoding is under way."""
        return self._maps.settled

    def close(self) -> None:
        """Finish and discard the encoding under way, and stop the thread. Safe to call twice."""
        self._maps.close()

    def _encode(self, frame: FrameView, due: Sequence[Crop]) -> list[Map]:
        """In the thread: coefficients of each crop's cells, float32[COMPONENTS, rows, columns]."""
        rgb = picture_rgb(frame)
        found = []
        for crop in due:
            pixels = crop.pixels(rgb)
            vectors = self._encoder.encode_image(pixels, self._longest)
            found.append(crop.at_cells(self._projection.compress(vectors), pixels))
        return found
