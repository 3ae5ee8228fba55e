"""A stream's text by a detector: looked for in a thread of its own, carried along the flow."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.encoders.regions import Region, whole
from foveate.pipeline.encoders.slow_maps import SlowMaps
from foveate.pipeline.errors import EngineError
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import CELL, Geometry
from foveate.pipeline.query.encoder import EmbedderInput
from foveate.pipeline.settings import OcrSettings
from foveate.pipeline.text.boxes import at_cells
from foveate.pipeline.text.detector import TextDetector

Map = NDArray[np.float32]

_LOG = logging.getLogger("foveate")


class Lettering:
    """The channel "text" of the frames of one size.

    A detector that fails ends nothing: that is told once, and what was found before is carried on and grows old.
    """

    def __init__(self, detector: TextDetector, settings: OcrSettings, geometry: Geometry) -> None:
        self._detector = detector
        self._nothing = np.zeros(geometry.grid, np.float32)
        self._maps = SlowMaps(self._find, 1, whole(geometry), settings, geometry, "foveate-text")
        self._read = False
        self._told = False  # that the detector fails
        self._age: int | None = None

    def update(self, view: EmbedderInput, read: bool) -> Map:
        """Text at this frame, float32[grid] in [0, 1]: how sure the detector is; 0 while it has not looked yet.

        Nothing is looked for while nobody is to ``read`` it.
        """
        self._read, self._age = read, None
        if not read:
            self._maps.forget()
            return self._nothing
        try:
            self._maps.update(view)
        except EngineError as error:
            self._tell(error)
        made = self._maps.made
        if made is None:
            return self._nothing
        self._age = made.age
        return np.asarray(made.maps[0], np.float32)

    def extras(self) -> dict[str, Any]:
        """For the last frame's record: frames since the picture was looked at; None while there is nothing yet."""
        return {"text_age": self._age} if self._read else {}

    @property
    def settled(self) -> bool:
        """True where another frame without any change would have the same text."""
        return self._maps.settled and not (self._read and self._age is None)

    def close(self) -> None:
        """Wait for the thread to end. Safe to call twice."""
        self._maps.close()

    def _find(self, frame: FrameView, due: Sequence[Region]) -> list[Map]:
        """In the thread: text of each region's cells, float32[1, rows, columns]."""
        rgb = picture_rgb(frame)
        rows, columns = (-(-side // CELL) for side in rgb.shape[:2])
        found = at_cells(self._detector(rgb), rows, columns, CELL)
        return [found[region.serves][None] for region in due]

    def _tell(self, error: EngineError) -> None:
        if not self._told:
            self._told = True
            _LOG.warning("%s; its earlier results stay in use", error)
