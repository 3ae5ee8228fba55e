"""The Source for everything that PyAV decodes from files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from av.video.frame import VideoFrame

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.clock import Stamped, Timed, timed
from foveate.pipeline.sources.decoding import Feed, FrameDecoder
from foveate.pipeline.sources.description import Opening, describe
from foveate.pipeline.sources.reading import PictureReader


class VideoSource:
    """Frames of one feed. The first is decoded on opening, so that ``info`` tells what really comes.

    Iterated once; ``close`` ends the iteration.
    """

    def __init__(self, feed: Feed, settings: SourceSettings, damage: Damage, name: str) -> None:
        """Decode the first frame. Raises SourceError if there is none."""
        self.damage = damage
        self._feed = feed
        self._reader = PictureReader(name, feed.geometry)
        self._numerator, self._denominator = feed.time_base.as_integer_ratio()
        self._origin: int | None = None  # the first timestamp, in ticks
        self._pictures = timed(self._stamped(), 1 / (feed.rate or settings.rate), feed.spliced)
        ahead = list(islice(self._pictures, 1 if feed.times == "stream" else 2))
        if not ahead:
            raise SourceError(f"{name}: no picture can be decoded; the file is damaged or not a video")
        lone = len(ahead) == 1 and feed.times != "stream"
        first = self._reader.read(ahead[0].item)
        start = None if self._origin is None else float(self._origin * feed.time_base)
        opening = Opening(ahead[0].item, first, start, lone)
        self.info = describe(feed, opening, settings, name)
        self._frames: Iterator[Frame] = islice(self._all(ahead), settings.frames)

    def __iter__(self) -> Iterator[Frame]:
        """Yield Frames in presentation order. Raises SourceError."""
        return self._frames

    def close(self) -> None:
        """Release the decoder. Safe to call twice; called by the thread that reads."""
        self._frames = iter(())
        self._pictures.close()
        self._feed.close()

    def _all(self, ahead: list[Timed[VideoFrame]]) -> Iterator[Frame]:
        index = 0
        while ahead:
            yield self._frame(index, ahead.pop(0))
            index += 1
        for picture in self._pictures:
            yield self._frame(index, picture)
            index += 1

    def _stamped(self) -> Iterator[Stamped[VideoFrame]]:
        tick = float(self._feed.time_base)
        for frame in FrameDecoder(self._feed, self.damage).frames():
            ticks = frame.dts if self._feed.decode_order else frame.pts
            yield Stamped(frame, self._seconds(ticks), (frame.duration or 0) * tick or None)

    def _seconds(self, ticks: int | None) -> float | None:
        """Seconds after the first timestamp."""
        if ticks is None:
            return None
        if self._origin is None:
            self._origin = ticks
        return (ticks - self._origin) * self._numerator / self._denominator

    def _frame(self, index: int, picture: Timed[VideoFrame]) -> Frame:
        shown = self._reader.read(picture.item)
        return Frame(index, picture.seconds, shown.luma, shown.chroma, shown.colour, picture.jumped)
