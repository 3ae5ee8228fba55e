"""The frames that a question will be about: the latest ones whole, or the tokens that are still visible."""

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from foveate.pipeline.selection import Selection, starts_scene
from foveate.pipeline.vlm.context import Context, Part
from foveate.pipeline.vlm.groups import Groups

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Account:
    """What an answer is made from, in language-model tokens; the text around pictures does not count."""

    frames: int
    begin: float  # seconds
    end: float
    given: int
    whole: int  # of all of these frames, at their own size
    selected: int | None = None  # with stream memory: all that was chosen, and of it ``given`` still shows
    new: int | None = None  # of ``given``: what the model has not got yet, where it has got some
    left_out: str = ""  # what the limit left out

    def __str__(self) -> str:
        frames = "1 frame" if self.frames == 1 else f"{self.frames:,} frames"
        new = "" if self.new is None else f" ({self.new:,} new)"
        told = f"{self.given:,}{new} of {self.whole:,} language-model tokens ({self.given / self.whole:.1%})"
        visible = "" if self.selected is None else f", what is still visible of {self.selected:,} selected"
        return f"{frames}, {self.begin:.1f} to {self.end:.1f} s: {told}{visible}{self.left_out}"


@dataclass(frozen=True, slots=True)
class _Frame(Generic[_T]):
    seconds: float
    cost: int
    whole: int
    shown: _T


class LatestFrames(Generic[_T]):
    """The latest frames, each by itself: at most ``most`` (None: any number), and within ``limit`` tokens.

    ``per_frame`` is what a frame costs of the limit besides its own tokens. The latest one is held whatever it costs.
    """

    def __init__(self, most: int | None, limit: int | None, per_frame: int = 0) -> None:
        self._limit, self._per_frame = limit, per_frame
        self._frames: deque[_Frame[_T]] = deque(maxlen=most)
        self._cost = 0
        self._left = False

    def add(self, seconds: float, cost: int, whole: int, shown: _T) -> None:
        """Add a frame of ``cost`` tokens, of the ``whole`` that it has; drop the oldest frames beyond the limits."""
        if len(self._frames) == self._frames.maxlen:
            self._drop()
        self._frames.append(_Frame(seconds, cost, whole, shown))
        self._cost += cost + self._per_frame
        while self._limit is not None and self._cost > self._limit and len(self._frames) > 1:
            self._drop()
            self._left = True

    def _drop(self) -> None:
        self._cost -= self._frames.popleft().cost + self._per_frame

    @property
    def shown(self) -> list[_T]:
        """What is held, in order."""
        return [frame.shown for frame in self._frames]

    def account(self) -> Account:
        """The account of the frames that are held."""
        given, whole = sum(frame.cost for frame in self._frames), sum(frame.whole for frame in self._frames)
        left = "; earlier frames left out by --limit" if self._left else ""
        begin, end = self._frames[0].seconds, self._frames[-1].seconds
        return Account(len(self._frames), begin, end, given, whole, left_out=left)


class LiveTokens:
    """Of a stream with stream memory the newest group of each cell, with ``scenes`` of each scene.

    Without ``scenes`` a scene cut ends all before it. Where the context's limit is exceeded, the oldest scenes leave
    first, and of the last one what shows in the fewest cells.
    """

    def __init__(self, limit: int, merge: int, per_frame: int, *, scenes: bool) -> None:
        self.context = Context(limit, merge, per_frame)
        self._limit, self._per_frame, self._scenes = limit, per_frame, scenes
        self._earlier: list[Part] = []  # of earlier scenes
        self._frames = self._selected = self._whole = 0
        self._begin = self._end = 0.0
        self._left = False

    def add(self, selection: Selection) -> None:
        """Add a frame."""
        if self._scenes and starts_scene(selection.keyframe):
            self._earlier += self.context.unsent()
        self.context.add(selection)
        while self._earlier and self._cost() > self._limit:
            self._earlier.pop(0)
            self._left = True
        groups = Groups.of(selection, self.context.merge)
        self._begin = self._begin if self._frames else selection.time
        self._end = selection.time
        self._frames += 1
        self._selected += len(groups)
        self._whole += groups.grid[0] * groups.grid[1]

    def _cost(self) -> int:
        frames = len(self._earlier) + len(np.unique(self.context.live.frame))
        return self._held() + self._per_frame * frames

    def _held(self) -> int:
        return sum(len(part.number) for part in self._earlier) + len(self.context)

    @property
    def shown(self) -> list[Selection]:
        """What is held, in order."""
        return [part.selection for part in (*self._earlier, *self.context.unsent())]

    def account(self) -> Account:
        """The account of all frames since the first."""
        left = "; tokens that cover little left out by --limit" if self._left or self.context.overflow else ""
        return Account(self._frames, self._begin, self._end, self._held(), self._whole, self._selected, left_out=left)
