"""The Source for everything that PyAV decodes from files."""

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import chain, islice

from av.video.frame import VideoFrame

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.clock import Stamped, Timed, timed
from foveate.pipeline.sources.decoding import Cancellable, FileFeed, FrameDecoder, next_feed
from foveate.pipeline.sources.description import Opening, describe
from foveate.pipeline.sources.reading import PictureReader
from foveate.pipeline.sources.sampling import Decision, NothingShownError, Sampling, nothing_shown, sampling_of
from foveate.pipeline.sources.skipping import Skipper, skipper_of


class VideoSource:
    """Frames of one feed. The first is decoded on opening, so that ``info`` describes what is really in it.

    Iterated once; ``close`` ends the iteration.
    """

    def __init__(self, feed: FileFeed, settings: SourceSettings, damage: Damage, name: str) -> None:
        """Decode the first frame. Raises SourceError if there is none."""
        self.damage = damage
        self._feed = feed
        self._decoder = FrameDecoder(feed, damage)
        self._reader = PictureReader(name, feed.geometry)
        self._numerator, self._denominator = feed.time_base.as_integer_ratio()
        self.origin: int | None = None  # the first timestamp, in ticks; None: there is none
        self._nominal = 1 / (feed.rate or settings.rate)
        self._pictures = timed(self._stamped(), self._nominal, feed.spliced)
        ahead = list(islice(self._pictures, 1 if feed.times == "stream" else 2))
        if not ahead:
            raise SourceError(f"{name}: no picture can be decoded: {self._decoder.failure(feed)}")
        single = len(ahead) == 1 and feed.times != "stream"
        skipped = self._decoder.skipped(ahead[0].item.pts)
        sampling = sampling_of(settings, feed.length, name)
        self._chosen = self._all(ahead) if sampling.is_everything else self._sampled(ahead, sampling)
        decision = next(self._chosen, None)
        if decision is None:
            raise NothingShownError(f"{name}: {nothing_shown(sampling)}")
        first = self._reader.read(decision.picture.item)
        start = None if self.origin is None else float(self.origin * feed.time_base)
        opening = Opening(decision.picture.item, first, start, single, skipped)
        info = describe(feed, opening, settings, name)
        self.info = info if sampling.is_everything or info.frames == 1 else replace(info, frames=None)
        frames = map(self._frame, chain([decision], self._chosen))
        self._frames: Iterator[Frame] = islice(frames, settings.frames)

    def __iter__(self) -> Iterator[Frame]:
        """Yield Frames in presentation order. Raises SourceError."""
        return self._frames

    def cancel(self) -> None:
        """End every wait for a server, now and later; files on disk are not waited for. From any thread."""
        if isinstance(self._feed, Cancellable):
            self._feed.cancel()

    def close(self) -> None:
        """Release the decoder. Safe to call twice; called by the thread that reads."""
        self._frames = iter(())
        self._chosen.close()
        self._pictures.close()
        self._feed.close()

    def _all(self, ahead: list[Timed[VideoFrame]]) -> Generator[Decision[VideoFrame], None, None]:
        for number, picture in enumerate(self._following(ahead)):
            yield Decision(number, picture, True)

    def _following(self, ahead: list[Timed[VideoFrame]]) -> Iterator[Timed[VideoFrame]]:
        """Every picture, beginning with those that were decoded on opening, and are not held any longer."""
        while ahead:
            yield ahead.pop(0)
        yield from self._pictures

    def _sampled(
        self, ahead: list[Timed[VideoFrame]], sampling: Sampling
    ) -> Generator[Decision[VideoFrame], None, None]:
        """The sampled pictures; the others are decoded only where it cannot be avoided."""
        skipper = self._skipper(ahead[0].item, sampling)
        if skipper is None:
            for decision in sampling.decide(self._following(ahead)):
                if decision.wanted:
                    yield decision
                else:
                    self._reader.pass_over(decision.picture.item)
            return
        ahead.clear()
        for run in skipper.runs():
            for frame in FrameDecoder(run, self.damage).frames():
                taken = skipper.take(frame.pts)
                if taken is None:
                    self._reader.pass_over(frame)
                else:
                    time = taken.picture
                    yield Decision(taken.number, Timed(frame, time.time, time.jumped, time.length), True)
            run.decoder.flush_buffers()
        if skipper.is_followed():
            yield from self._decoded_through(sampling, skipper.decided)
        else:
            skipper.finish()

    def _decoded_through(self, sampling: Sampling, begin: int) -> Iterator[Decision[VideoFrame]]:
        """The sampled pictures from number ``begin`` on: reads the file again, and all streams that continue it."""
        feed = self._feed.again()
        if feed is None:
            return
        self._feed.close()
        self._feed = feed
        self.damage.clear()  # what was lost is met again
        self._decoder = FrameDecoder(feed, self.damage)
        self._pictures = timed(self._stamped(), self._nominal, feed.spliced)
        for decision in sampling.decide(self._pictures):
            if decision.wanted and decision.number >= begin:
                yield decision
            else:
                self._reader.pass_over(decision.picture.item)

    def _skipper(self, first: VideoFrame, sampling: Sampling) -> Skipper | None:
        """Reads the file again and chooses its packets; None if every picture has to be decoded."""
        feed = None if first.interlaced_frame or self.origin is None else self._feed.again()
        if feed is None or self.origin is None:
            return None
        skipper = skipper_of(feed, sampling, self.origin, self._nominal, self.damage)
        if skipper is None:
            return None
        self._pictures.close()
        self._feed.close()
        self._feed = feed
        self.damage.clear()  # damage after the first picture is met again, or skipped
        return skipper

    def _stamped(self) -> Iterator[Stamped[VideoFrame]]:
        yield from self._stamped_of_feed()
        while (following := next_feed(self._feed, self.damage)) is not None:
            if self.origin is not None:
                self.origin = round(self.origin * self._feed.time_base / following.time_base)
            self._feed, self._decoder = following, FrameDecoder(following, self.damage)
            self._numerator, self._denominator = following.time_base.as_integer_ratio()
            yield from self._stamped_of_feed()

    def _stamped_of_feed(self) -> Iterator[Stamped[VideoFrame]]:
        tick = float(self._feed.time_base)
        for frame in self._decoder.frames():
            ticks = frame.dts if self._feed.decode_order else frame.pts
            yield Stamped(frame, self._seconds(ticks), (frame.duration or 0) * tick or None)

    def _seconds(self, ticks: int | None) -> float | None:
        """Seconds after the first timestamp."""
        if ticks is None:
            return None
        if self.origin is None:
            self.origin = ticks
        return (ticks - self.origin) * self._numerator / self._denominator

    def _frame(self, decision: Decision[VideoFrame]) -> Frame:
        picture = decision.picture
        return self._reader.frame(picture.item, decision.number, picture.time, picture.jumped)
