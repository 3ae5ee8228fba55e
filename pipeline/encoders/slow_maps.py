"""Maps that take longer to make than a frame lasts: made in a thread of their own, carried along the flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.encoders.carried import Track
from foveate.pipeline.encoders.regions import Region
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.query.encoder import EmbedderInput

Map = NDArray[np.float32]
Make = Callable[[FrameView, Sequence[Region]], list[Map]]
"""Of a frame, each region's cells: float32[maps, rows, columns]."""

_NEVER = -1


class Pace(Protocol):
    """When maps are made again; see settings.ClipSettings."""

    @property
    def interval(self) -> int: ...
    @property
    def stale(self) -> float: ...
    @property
    def wait(self) -> bool | None: ...


class Made(NamedTuple):
    """The maps at one frame."""

    maps: Map  # float32[maps, grid]
    age: int  # frames since the pixels that they were made of, or the oldest of them


class _Asked(NamedTuple):
    """What is being made, of the frame at which the track began."""

    regions: tuple[Region, ...]
    frame: int  # counted from the first update
    result: Future[list[Map]]


class SlowMaps:
    """Maps over the Grid of the frames of one size.

    A region is made anew when more than the pace's share of its cells was lost by the flow, and some frames after it
    was last made if it has changed since. All is lost on keyframes. With ``wait`` the thread is always waited for, so
    that two runs are equal; else the newest maps there are serve until it is done, and then what it made is carried
    from its frame to the present one.
    """

    def __init__(
        self, make: Make, count: int, regions: Sequence[Region], pace: Pace, geometry: Geometry, thread: str
    ) -> None:
        """``make`` is called in a thread whose name begins with ``thread``, and gives ``count`` maps."""
        self._make = make
        self._count = count
        self._regions = regions
        self._pace = pace
        self._geometry = geometry
        self._thread = ThreadPoolExecutor(1, thread)
        self._asked: _Asked | None = None
        self._frame = 0
        self.begun = 0.0  # share of the picture's cells that the last update began to make
        self.forget()

    def forget(self) -> None:
        """Know nothing, and want nothing of what is on its way."""
        grid = self._geometry.grid
        if self._asked is not None:
            self._asked.result.cancel()
        self._asked = None
        self._maps = np.zeros((self._count, *grid), np.float32)
        self._made = np.full(grid, _NEVER, np.int32)  # the frame of each cell's values
        self._stale = np.ones(grid, np.bool_)  # lost before the track began
        self._touched = np.zeros(grid, np.bool_)  # changed since it was made
        self._track = Track(grid)

    def update(self, view: EmbedderInput) -> None:
        """One frame on. Raises what ``make`` raised; all that was there is kept then."""
        self._frame += 1
        self.begun = 0.0
        if view.keyframe not in (None, "periodic"):
            self.forget()
        else:
            self._track.follow(view.flow, view.valid)
            self._touched = self._touched | view.changed
        self._take(wait=False)
        if self._asked is None and (due := self._due()):
            self._ask(due, view.frame)
        self._take(wait=view.frame.live is None if self._pace.wait is None else self._pace.wait)

    @property
    def made(self) -> Made | None:
        """The maps at the last frame; None while there are none yet."""
        inside = self._track.read_nearest(self._made)[self._geometry.inside]
        oldest = int(inside.min())
        return None if oldest == _NEVER else Made(self._track.read(self._maps), self._frame - oldest)

    @property
    def settled(self) -> bool:
        """True where another frame without any change would have the same maps: none is on its way."""
        return self._asked is None

    def close(self) -> None:
        """Wait for the thread to end; what it works on is finished first, and lost. Safe to call twice."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _due(self) -> tuple[Region, ...]:
        """The regions to make now."""
        lost = self._track.lost | self._track.read_nearest(self._stale)
        made = self._track.read_nearest(self._made)
        old = (made <= self._frame - self._pace.interval) & self._touched
        return tuple(region for region in self._regions if self._is_due(lost[region.serves], old[region.serves]))

    def _is_due(self, lost: Mask, old: Mask) -> bool:
        return bool(lost.all() or lost.mean() > self._pace.stale or old.any())

    def _ask(self, due: tuple[Region, ...], frame: FrameView) -> None:
        """Begin a new track at this frame, and have the thread make what is due of it."""
        self._maps = self._track.read(self._maps)
        self._made = self._track.read_nearest(self._made)
        self._stale = self._track.lost | self._track.read_nearest(self._stale)
        self._track = Track(self._geometry.grid)
        for region in due:
            self._touched[region.serves] = False
        self.begun = sum(region.cells for region in due) / self._geometry.cells
        self._asked = _Asked(due, self._frame, self._thread.submit(self._make, frame, due))

    def _take(self, *, wait: bool) -> None:
        """Take over what the thread has made, if it is there or to be waited for."""
        asked = self._asked
        if asked is None or not (wait or asked.result.done()):
            return
        self._asked = None
        made = asked.result.result()
        self._maps = self._maps.copy()  # what was handed out stays as it is
        for region, values in zip(asked.regions, made, strict=True):
            self._maps[(slice(None), *region.serves)] = values
            self._made[region.serves] = asked.frame
            self._stale[region.serves] = False
