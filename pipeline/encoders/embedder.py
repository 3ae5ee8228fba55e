"""A stream's embeddings: encoded in a thread of its own where they are missing or stale, carried along the flow."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.encoders.base import ImageTextEncoder
from foveate.pipeline.encoders.carried import Track
from foveate.pipeline.encoders.pca import COMPONENTS, Projection
from foveate.pipeline.encoders.regions import Region, longest_side, regions
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.query.encoder import Embedded, View
from foveate.pipeline.settings import ClipSettings

Map = NDArray[np.float32]
_NEVER = -1


class _Asked(NamedTuple):
    """An encoding on its way, of the frame at which the track began."""

    regions: tuple[Region, ...]
    frame: int  # counted by the embedder
    result: Future[list[Map]]


class DenseEmbedder:
    """The coefficients of the frames of one size, see pipeline.query.encoder.Embedder.

    A region is encoded when more than the settings' share of its cells was lost by the flow, and some frames after it
    was last encoded if it has changed since. All is lost on keyframes. With ``wait`` every encoding is waited for, so
    that two runs are equal; else the newest embeddings there are serve until it is done, and then it is carried from
    its frame to the present one.
    """

    def __init__(
        self, encoder: ImageTextEncoder, projection: Projection, settings: ClipSettings, geometry: Geometry
    ) -> None:
        self._encoder = encoder
        self._projection = projection
        self._settings = settings
        self._geometry = geometry
        self._regions = regions(geometry, settings)
        self._longest = longest_side(encoder, settings)
        self._thread = ThreadPoolExecutor(1, "foveate-encoder")
        self._asked: _Asked | None = None
        self._frame = 0
        self.encoded = 0.0  # share of the picture's cells whose encoding the last update began
        self._begin()

    def _begin(self) -> None:
        """Know nothing, and want nothing of what is on its way."""
        grid = self._geometry.grid
        if self._asked is not None:
            self._asked.result.cancel()
        self._asked = None
        self._maps = np.zeros((COMPONENTS, *grid), np.float32)
        self._encoded = np.full(grid, _NEVER, np.int32)  # the frame of each cell's embedding
        self._stale = np.ones(grid, np.bool_)  # lost before the track began
        self._touched = np.zeros(grid, np.bool_)  # changed since it was encoded
        self._track = Track(grid)

    def update(self, view: View) -> Embedded | None:
        """The coefficients at this frame; None while there are none yet. Raises what the encoder raises."""
        self._frame += 1
        self.encoded = 0.0
        if view.keyframe not in (None, "periodic"):
            self._begin()
        else:
            self._track.follow(view.flow, view.valid)
            self._touched = self._touched | view.changed
        self._take(wait=False)
        if self._asked is None and (due := self._due()):
            self._ask(due, view.frame)
        self._take(wait=self._waits(view.frame))
        return self._embedded()

    @property
    def settled(self) -> bool:
        """True where another frame without any change would have the same embeddings: none is on its way."""
        return self._asked is None

    def close(self) -> None:
        """Wait for the thread to end; what it works on is finished first, and lost. Safe to call twice."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _waits(self, frame: FrameView) -> bool:
        return frame.live is None if self._settings.wait is None else self._settings.wait

    def _due(self) -> tuple[Region, ...]:
        """The regions to encode now."""
        lost = self._track.lost | self._track.read_nearest(self._stale)
        encoded = self._track.read_nearest(self._encoded)
        old = (encoded <= self._frame - self._settings.interval) & self._touched
        return tuple(region for region in self._regions if self._is_due(lost[region.serves], old[region.serves]))

    def _is_due(self, lost: Mask, old: Mask) -> bool:
        return bool(lost.all() or lost.mean() > self._settings.stale or old.any())

    def _ask(self, due: tuple[Region, ...], frame: FrameView) -> None:
        """Begin a new track at this frame, and have the thread encode what is due of it."""
        self._maps = self._track.read(self._maps)
        self._encoded = self._track.read_nearest(self._encoded)
        self._stale = self._track.lost | self._track.read_nearest(self._stale)
        self._track = Track(self._geometry.grid)
        for region in due:
            self._touched[region.serves] = False
        self.encoded = sum(region.cells for region in due) / self._geometry.cells
        self._asked = _Asked(due, self._frame, self._thread.submit(self._encode, frame, due))

    def _encode(self, frame: FrameView, due: Sequence[Region]) -> list[Map]:
        """In the thread: coefficients of each region's cells, float32[COMPONENTS, rows, columns]."""
        rgb = picture_rgb(frame)
        found = []
        for region in due:
            crop = region.crop(rgb)
            vectors = self._encoder.encode_image(crop, self._longest)
            found.append(region.at_cells(self._projection.compress(vectors), crop))
        return found

    def _take(self, *, wait: bool) -> None:
        """Take over what the thread has made, if it is there or to be waited for."""
        asked = self._asked
        if asked is None or not (wait or asked.result.done()):
            return
        self._asked = None
        self._maps = self._maps.copy()  # what was handed out stays as it is
        for region, coefficients in zip(asked.regions, asked.result.result(), strict=True):
            self._maps[(slice(None), *region.serves)] = coefficients
            self._encoded[region.serves] = asked.frame
            self._stale[region.serves] = False

    def _embedded(self) -> Embedded | None:
        inside = self._track.read_nearest(self._encoded)[self._geometry.inside]
        oldest = int(inside.min())
        return None if oldest == _NEVER else Embedded(self._track.read(self._maps), self._frame - oldest)
