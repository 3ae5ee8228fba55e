"""Which pictures of a video are processed: a span of time, so many a second, or every Nth."""

import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.clock import Timed

TOLERANCE = 0.001  # seconds: containers such as Matroska and FLV round their times to milliseconds

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """One picture, in presentation order, and whether it is processed. ``number`` counts the pictures of the file."""

    number: int
    picture: Timed[T]
    wanted: bool


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which pictures of a video are processed. Times are seconds after its first picture.

    A picture is shown from its own time until that of the next one. Of those shown in [start, end), the ones shown at
    ``start + k / fps`` for k = 0, 1, ... are processed if ``fps`` is set, each once; else the first and every
    ``every``-th after it.
    """

    start: float = 0.0
    end: float = math.inf
    fps: float | None = None
    every: int = 1

    @property
    def is_everything(self) -> bool:
        """Whether no picture is left out."""
        return self == Sampling()

    def decide(self, pictures: Iterable[Timed[T]], first: int = 0) -> Generator[Decision[T], None, None]:
        """Decide on ``pictures``, whose numbers begin with ``first``; ends at the end of the span.

        That needs the next picture. If times jump among pictures that are left out, the next one that is processed
        counts as the discontinuity.
        """
        count, jumped = 0, False
        for number, (picture, until) in enumerate(_with_ends(pictures), first):
            if picture.time >= self.end - TOLERANCE:
                return
            inside = picture.time >= self.start or until - TOLERANCE > self.start
            wanted = inside and self._takes(picture.time, until, count)
            count += inside
            jumped |= picture.jumped
            yield Decision(number, replace(picture, jumped=jumped), wanted)
            jumped &= not wanted

    def _takes(self, seconds: float, until: float, count: int) -> bool:
        """Whether a picture inside the span is taken; ``count`` others of the span came before it."""
        if self.fps is None:
            return count % self.every == 0
        since = max(seconds - TOLERANCE - self.start, 0.0)
        due = self.start + math.ceil(since * self.fps) / self.fps
        return due < min(until, self.end) - TOLERANCE


def sampling_of(settings: SourceSettings, length: float | None, name: str) -> Sampling:
    """The Sampling that ``settings`` ask for, of a video of ``length`` seconds, None where that is unknown.

    Raises SourceError where a time counts from an unknown end, or nothing lies between ``start`` and ``end``.
    """
    start, end = (_from_beginning(time, length, name) for time in (settings.start, settings.end))
    if start is not None and end is not None and end <= start:
        span = f"{start:g} s and {end:g} s"
        raise SourceError(f"{name}: nothing is between start and end, {span} of it; choose other times")
    return Sampling(start or 0.0, math.inf if end is None else end, settings.fps, settings.every or 1)


class NothingShownError(SourceError):
    """Pictures can be decoded, but the settings leave all of them out."""


def nothing_shown(sampling: Sampling) -> str:
    """Why no picture is processed although pictures can be decoded."""
    return f"there is no frame at {sampling.start:g} s or later; give an earlier start"


def _from_beginning(time: float | None, length: float | None, name: str) -> float | None:
    """A time that counts from the end, where it is negative, as seconds from the beginning."""
    if time is None or time >= 0:
        return time
    if length is None:
        raise SourceError(f"{name}: its length is unknown, so no time counts from its end, as {time:g} s does")
    return max(length + time, 0.0)


def _with_ends(pictures: Iterable[Timed[T]]) -> Iterator[tuple[Timed[T], float]]:
    """Each picture with the time until which it is shown, in seconds."""
    held: Timed[T] | None = None
    for picture in pictures:
        if held is not None:
            yield held, picture.time
        held = picture
    if held is not None:
        yield held, held.time + held.length
