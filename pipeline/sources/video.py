"""The Source for everything that PyAV decodes from files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from av.video.frame import VideoFrame

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.clock import Stamped, Timed, timed
from foveate.pipeline.sources.decoding import Feed, decoded
from foveate.pipeline.sources.description import describe
from foveate.pipeline.sources.orientation import UPRIGHT, orientation_of, turn, turn_chroma
from foveate.pipeline.sources.planes import PlaneReader


class VideoSource:
    """Frames of one feed. The first is decoded on opening, so that ``info`` tells what really comes.

    Iterated once; ``close`` ends the iteration.
    """

    def __init__(self, feed: Feed, settings: SourceSettings, damage: Damage, name: str) -> None:
        """Decode the first frame. Raises SourceError if there is none."""
        self.damage = damage
        self._feed = feed
        self._reader = PlaneReader(name)
        self._origin: int | None = None  # the first timestamp, in ticks
        nominal = 1 / (feed.rate or settings.rate)
        self._pictures = timed(self._stamped(), nominal)
        first = next(self._pictures, None)
        if first is None:
            raise SourceError(f"{name}: no picture can be decoded; the file is damaged or not a video")
        frame = self._frame(0, first)
        start = float((self._origin or 0) * feed.time_base)
        self.info = describe(feed, first.item, frame, start, settings, name)
        self._frames: Iterator[Frame] = islice(self._all(frame), settings.frames)

    def __iter__(self) -> Iterator[Frame]:
        """Yield Frames in presentation order. Raises SourceError."""
        return self._frames

    def close(self) -> None:
        """Release the decoder. Safe to call twice; called by the thread that reads."""
        self._frames = iter(())
        self._pictures.close()
        self._feed.close()

    def _all(self, first: Frame) -> Iterator[Frame]:
        yield first
        del first  # not to be held while the others are read
        for index, picture in enumerate(self._pictures, 1):
            yield self._frame(index, picture)

    def _stamped(self) -> Iterator[Stamped[VideoFrame]]:
        tick = self._feed.time_base
        for frame in decoded(self._feed, self.damage):
            ticks = frame.dts if self._feed.decode_order else frame.pts
            if self._origin is None:
                self._origin = ticks
            stamp = None if ticks is None else float((ticks - self._origin) * tick)
            yield Stamped(frame, stamp, float(frame.duration * tick) or None)

    def _frame(self, index: int, picture: Timed[VideoFrame]) -> Frame:
        luma, chroma, colour = self._reader.read(picture.item)
        orientation = orientation_of(picture.item)
        if orientation != UPRIGHT:
            if chroma is not None:
                blue, red = (turn_chroma(plane, luma, orientation) for plane in chroma)
                chroma = blue, red
            luma = turn(luma, orientation)
        return Frame(index, picture.seconds, luma, chroma, colour, picture.jumped)
