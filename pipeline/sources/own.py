"""Sources of frames from Python: an iterable of pictures, or pictures that are pushed one by one."""

import math
from collections.abc import Iterable, Iterator, Sized
from dataclasses import replace
from itertools import chain, islice
from numbers import Real
from typing import Any, Final

from foveate.pipeline.bounded_queue import END, BoundedQueue
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.settings import SourceSettings, shown_value
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.arrays import ArrayReader, Layout, described, is_one_picture, time_of
from foveate.pipeline.sources.clock import Timed
from foveate.pipeline.sources.sampling import Sampling, nothing_shown, sampling_of

OWN: Final = "<frames>"  # the name of a source that is iterated over
PUSHED: Final = "<pushed frames>"


class OwnClock:
    """Times of frames from Python: given by the caller, the frames' own, or by the frame rate; the first is 0.0."""

    def __init__(self, rate: float, fixed: bool) -> None:
        """``fixed``: the rate is used even for frames with times of their own."""
        self._rate, self._fixed = rate, fixed
        self._last: float | None = None
        self._anchor, self._since = 0.0, 0  # the latest time that was not made up, and how many were made up since
        self._given: float | None = None  # the latest one
        self.start: float | None = None  # the first time that was not made up
        self._shift = 0.0  # what is taken from such times

    def place(self, given: object, own: float | None, number: int) -> tuple[float, bool]:
        """Seconds after the first frame, and whether the frames' own times jumped back.

        Raises SourceError, which names ``number``, for a given time that is not a number or does not grow.
        """
        stamp = None if self._fixed else own
        if given is not None:
            stamp = self._checked(given, number)
        made_up = 0.0 if self._last is None else self._anchor + (self._since + 1) / self._rate
        if stamp is None:
            self._since += self._last is not None
            self._last = made_up
            return made_up, False
        if self.start is None:
            self.start, self._shift = stamp, stamp - made_up
        seconds = stamp - self._shift
        back = self._last is not None and seconds <= self._last
        if back:
            self._shift, seconds = stamp - made_up, made_up
        self._last = self._anchor = seconds
        self._since = 0
        return seconds, back

    def _checked(self, given: object, number: int) -> float:
        if isinstance(given, bool) or not isinstance(given, Real) or not math.isfinite(given):
            raise SourceError(f"frame {number}: its time must be a number of seconds, got {given!r}")
        stamp = float(given)
        if self._given is not None and stamp <= self._given:
            raise SourceError(
                f"frame {number}: its time must be greater than that of the one before, {self._given:g} s, "
                f"got {stamp:g} s"
            )
        self._given = stamp
        return stamp


class FrameMaker:
    """Makes Frames of pictures from Python, in order."""

    def __init__(self, rate: float, fixed_rate: bool, layout: Layout) -> None:
        self._reader = ArrayReader(layout)
        self._clock = OwnClock(rate, fixed_rate)
        self._rate, self._fixed_rate = rate, fixed_rate
        self.count = 0  # frames made so far
        self._kind = ""  # what the first one was

    def frames(self, given: Iterable[object]) -> Iterator[Frame]:
        """Yield a Frame for each picture, or pair of time and picture. Raises SourceError."""
        for item in given:
            time, picture = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
            yield self.frame(picture, time)

    def frame(self, picture: object, time: object) -> Frame:
        """The next Frame. Raises SourceError, and does not count that picture."""
        number = self.count
        made = self._reader.read(picture, number)
        seconds, jumped = self._clock.place(time, time_of(picture), number)
        self.count += 1
        self._kind = self._kind or made.kind
        return Frame(number, seconds, made.luma, made.chroma, made.colour, jumped)

    def describe(self, name: str, first: Frame, frames: int | None) -> SourceInfo:
        """The SourceInfo, once there is a first frame."""
        timed = self._clock.start is not None
        made_up = not (timed or self._fixed_rate)
        return SourceInfo(
            name=name,
            width=first.width,
            height=first.height,
            fps=None if timed else self._rate,
            frames=frames,
            start=self._clock.start or 0.0,
            times="rate setting" if made_up else "stream",
            assumed_rate=self._rate if made_up else None,
            pixel_format=self._kind,
        )


class OwnSource:
    """Frames of an iterable: pictures, or (time in seconds, picture). Iterated once.

    The first is taken on opening, so that ``info`` describes what is really in it; the others by the thread that reads.
    """

    def __init__(
        self, frames: object, settings: SourceSettings, fixed_rate: bool, layout: Layout, name: str | None = None
    ) -> None:
        """``fixed_rate``: the rate setting is used even for frames with times of their own.

        Raises SourceError where the first is no picture, and SettingsError for what is no iterable of them.
        """
        self.damage = Damage()
        self._making = FrameMaker(settings.rate, fixed_rate, layout)
        name = OWN if name is None else shown(name)
        sampling = sampling_of(settings, None, name)
        made = self._making.frames(_several(frames))
        if not sampling.is_everything:
            made = _sampled(made, sampling, 1 / settings.rate)
        first = next(made, None)
        if first is None:
            empty = f"no frame came; the {type(frames).__name__} is empty"
            raise SourceError(f"{name}: {nothing_shown(sampling) if self._making.count else empty}")
        count = len(frames) if isinstance(frames, Sized) else None
        self.info = self._making.describe(name, first, _least(count, settings.frames))
        self._frames: Iterator[Frame] = islice(chain([first], made), settings.frames)

    def __iter__(self) -> Iterator[Frame]:
        """Yield Frames. Raises SourceError for what is no picture, and what the iterable raises."""
        return self._frames

    def close(self) -> None:
        """Release the iterable. Safe to call twice."""
        self._frames = iter(())


class PushedSource:
    """Frames that are pushed by one thread and read by another."""

    def __init__(self, settings: SourceSettings, fixed_rate: bool, layout: Layout) -> None:
        """See OwnSource."""
        self.damage = Damage()
        self.info = SourceInfo(PUSHED, 0, 0, None, None)  # until there is a frame
        self._making = FrameMaker(settings.rate, fixed_rate, layout)
        self._waiting = BoundedQueue(1)

    def take(self, picture: object, time: float | None) -> Frame:
        """The next Frame. Raises SourceError if it is no picture; that one is not counted."""
        frame = self._making.frame(picture, time)
        if frame.index == 0:
            self.info = self._making.describe(PUSHED, frame, None)
        return frame

    def put(self, frame: Frame) -> None:
        """Hand a frame to the thread that reads. Raises Cancelled once the source is closed."""
        self._waiting.put(frame)

    def __iter__(self) -> Iterator[Frame]:
        """Yield Frames until the source is cancelled, which raises Cancelled."""
        while (frame := self._waiting.get()) is not END:
            yield frame

    def cancel(self) -> None:
        """End every wait. From any thread."""
        self._waiting.cancel()

    def close(self) -> None:
        """The same."""
        self._waiting.cancel()


def _sampled(frames: Iterable[Frame], sampling: Sampling, length: float) -> Iterator[Frame]:
    """The sampled frames. All are copied, because the caller may reuse their memory before the choice is made."""
    for decision in sampling.decide(Timed(frame, frame.time, frame.discontinuity, length) for frame in frames):
        if decision.wanted:
            yield replace(decision.picture.item, discontinuity=decision.picture.jumped)


def _several(frames: Any) -> Iterable[object]:
    """The frames as an iterable; raises SettingsError if they are a single picture, or not iterable."""
    if is_one_picture(frames):
        raise SettingsError(f"source is one picture, {described(frames)}; give several, as a list or a generator")
    try:
        if not isinstance(frames, bytes | bytearray | memoryview):
            return iter(frames)
    except TypeError:
        pass
    raise SettingsError(
        "source must be a path, an address, a camera's number, a binary file object or an iterable of frames, "
        f"got {shown_value(frames)}"
    )


def _least(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return min(known, default=None)
