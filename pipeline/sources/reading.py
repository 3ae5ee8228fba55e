"""Decoded frames as pictures to be looked at: planes of 8 bits, upright."""

from __future__ import annotations

from typing import NamedTuple

from av.video.frame import VideoFrame

from foveate.pipeline.frames import Colour, Plane
from foveate.pipeline.sources.orientation import UPRIGHT, Orientation, OrientationReader, turn, turn_chroma
from foveate.pipeline.sources.planes import Chroma, PlaneReader


class Picture(NamedTuple):
    """What is shown of one decoded frame. Planes as in ``Frame``; ``orientation`` is what was applied to them."""

    luma: Plane
    chroma: Chroma | None
    colour: Colour
    orientation: Orientation


class PictureReader:
    """Reads the frames of one stream."""

    def __init__(self, name: str) -> None:
        self._planes = PlaneReader(name)
        self._orientations = OrientationReader()

    def read(self, frame: VideoFrame) -> Picture:
        """The picture as it is to be seen. Raises SourceError where its pixels cannot be converted."""
        luma, chroma, colour = self._planes.read(frame)
        orientation = self._orientations.read(frame)
        if orientation != UPRIGHT:
            if chroma is not None:
                blue, red = (turn_chroma(plane, luma, orientation) for plane in chroma)
                chroma = blue, red
            luma = turn(luma, orientation)
        return Picture(luma, chroma, colour, orientation)
