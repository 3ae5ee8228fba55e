"""Decoded frames as pictures: planes of 8 bits, cropped and upright."""

import logging
from typing import NamedTuple

from av.video.frame import VideoFrame

from foveate.pipeline.frames import Colour, Frame, LiveTimes, Plane
from foveate.pipeline.sources.cropping import Crop, Geometry
from foveate.pipeline.sources.orientation import UPRIGHT, Orientation, OrientationReader, turn, turn_chroma
from foveate.pipeline.sources.planes import Chroma, PlaneReader

_LOG = logging.getLogger("foveate")


class Picture(NamedTuple):
    """The visible picture of a decoded frame. Planes as in ``Frame``, with crop and orientation applied."""

    luma: Plane
    chroma: Chroma | None
    colour: Colour
    crop: Crop | None
    orientation: Orientation


class PictureReader:
    """Reads the frames of one stream.

    What cannot be applied to the first frame is noted in the stream's description; what begins later is logged as a
    warning.
    """

    def __init__(self, name: str, geometry: Geometry) -> None:
        self._name = name
        self._reported: set[str] | None = None  # what could not be applied; None before the first frame
        self._planes = PlaneReader(name)
        self._crop = geometry.crop
        self._orientations = OrientationReader(geometry.orientation)

    def read(self, frame: VideoFrame) -> Picture:
        """The visible picture. Raises SourceError where its pixels cannot be converted."""
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
        if self._reported is None or orientation.unsupported is not None or crop is not self._crop:
            self._report(orientation.unsupported, None if crop is self._crop else "the container's cropping")
        return Picture(luma, chroma, colour, crop, orientation)

    def frame(
        self, decoded: VideoFrame, index: int, time: float, discontinuity: bool, live: LiveTimes | None = None
    ) -> Frame:
        """The Frame of a decoded picture. Raises SourceError as ``read`` does."""
        picture = self.read(decoded)
        return Frame(index, time, picture.luma, picture.chroma, picture.colour, discontinuity, live)

    def _report(self, *unsupported: str | None) -> None:
        found = set(filter(None, unsupported))
        if self._reported is None:
            self._reported = found
        for each in sorted(found - self._reported):
            self._reported.add(each)
            _LOG.warning("%s: in the middle begins what cannot be applied: %s", self._name, each)

    def pass_over(self, frame: VideoFrame) -> None:
        """Note the orientation of a frame that is left out: it may hold for the frames after it."""
        self._orientations.read(frame)
