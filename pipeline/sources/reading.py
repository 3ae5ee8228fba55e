"""Decoded frames as pictures to be looked at: planes of 8 bits, cropped and upright."""

from __future__ import annotations

import logging
from typing import NamedTuple

from av.video.frame import VideoFrame

from foveate.pipeline.frames import Colour, Plane
from foveate.pipeline.sources.cropping import Crop, Geometry
from foveate.pipeline.sources.orientation import UPRIGHT, Orientation, OrientationReader, turn, turn_chroma
from foveate.pipeline.sources.planes import Chroma, PlaneReader

_LOG = logging.getLogger("foveate")


class Picture(NamedTuple):
    """What is shown of one decoded frame. Planes as in ``Frame``; crop and orientation were applied to them."""

    luma: Plane
    chroma: Chroma | None
    colour: Colour
    crop: Crop | None
    orientation: Orientation


class PictureReader:
    """Reads the frames of one stream.

    What cannot be applied to its first frame is told with the stream's description; what begins later is warned of.
    """

    def __init__(self, name: str, geometry: Geometry) -> None:
        self._name = name
        self._told: set[str] | None = None  # what could not be applied; None before the first frame
        self._planes = PlaneReader(name)
        self._crop = geometry.crop
        self._orientations = OrientationReader(geometry.orientation)

    def read(self, frame: VideoFrame) -> Picture:
        """The picture as it is to be seen. Raises SourceError where its pixels cannot be converted."""
        luma, chroma, colour = self._planes.read(frame)
        crop = self._crop if self._crop is not None and self._crop.fits(luma) else None
        if crop is not None:
            chroma = chroma and (crop.cut(chroma[0]), crop.cut(chroma[1]))
            luma = crop.cut(luma)
        orientation = self._orientations.read(frame)
        if orientation != UPRIGHT:
            if chroma is not None:
                blue, red = (turn_chroma(plane, luma, orientation) for plane in chroma)
                chroma = blue, red
            luma = turn(luma, orientation)
        if self._told is None or orientation.lacking is not None or crop is not self._crop:
            self._tell(orientation.lacking, None if crop is self._crop else "the container's cropping")
        return Picture(luma, chroma, colour, crop, orientation)

    def _tell(self, *lacking: str | None) -> None:
        found = set(filter(None, lacking))
        if self._told is None:
            self._told = found
        for each in sorted(found - self._told):
            self._told.add(each)
            _LOG.warning("%s: in the middle begins what cannot be applied: %s", self._name, each)

    def pass_over(self, frame: VideoFrame) -> None:
        """Take note of a frame that is not looked at: those behind it may be turned as it says."""
        self._orientations.read(frame)
