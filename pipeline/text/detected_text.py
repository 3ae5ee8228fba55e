"""Text of a stream by a detector, which runs in a thread; its result is warped along the flow."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.encoders.async_maps import AsyncMaps
from foveate.pipeline.encoders.crops import Crop, whole_picture
from foveate.pipeline.errors import EngineError
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import CELL, Geometry, Map
from foveate.pipeline.query.encoder import EmbedderInput
from foveate.pipeline.settings import OcrSettings
from foveate.pipeline.text.boxes import at_cells
from foveate.pipeline.text.detector import TextDetector

_LOG = logging.getLogger("foveate")


class DetectedText:
    """The channel "text" of frames of one size.

    If the detector fails, a warning is logged once, and the last result stays in use.
    """

    def __init__(self, detector: TextDetector, settings: OcrSettings, geometry: Geometry) -> None:
        self._detector = detector
        self._no_text = np.zeros(geometry.grid, np.float32)
        self._maps = AsyncMaps(self._find, 1, whole_picture(geometry), settings, geometry, "foveate-text")
        self._read = False
        self._warned = False
        self._age: int | None = None

    def update(self, view: EmbedderInput, read: bool) -> Map:
        """Confidence of text at this frame, float32[grid] in [0, 1]; 0 before the first result.

        The detector does not run unless the channel is ``read``.
        """
        self._read, self._age = read, None
        if not read:
            self._maps.forget()
            return self._no_text
        try:
            self._maps.update(view)
        except EngineError as error:
            self._warn(error)
        made = self._maps.made
        if made is None:
            return self._no_text
        self._age = made.age
        return np.asarray(made.maps[0], np.float32)

    def extras(self) -> dict[str, Any]:
        """For the last frame's record: age of the detector's result in frames; None before the first one."""
        return {"text_age": self._age} if self._read else {}

    @property
    def settled(self) -> bool:
        """True if another frame without any change would have the same text."""
        return self._maps.settled and not (self._read and self._age is None)

    def close(self) -> None:
        """Stop the thread. Safe to call twice."""
        self._maps.close()

    def _find(self, frame: FrameView, due: Sequence[Crop]) -> list[Map]:
        """In the thread: text of each crop's cells, float32[1, rows, columns]."""
        rgb = picture_rgb(frame)
        rows, columns = (-(-side // CELL) for side in rgb.shape[:2])
        found = at_cells(self._detector(rgb), rows, columns, CELL)
        return [found[crop.serves][None] for crop in due]

    def _warn(self, error: EngineError) -> None:
        if not self._warned:
            self._warned = True
            _LOG.warning("%s; its earlier results stay in use", error)
