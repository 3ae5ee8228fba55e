"""Maps that take longer than a frame: computed in a thread, and warped along the flow meanwhile."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np

from foveate.pipeline.encoders.crops import Crop
from foveate.pipeline.encoders.flow_track import FlowTrack
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry, Map, Mask
from foveate.pipeline.query.encoder import EmbedderInput

Make = Callable[[FrameView, Sequence[Crop]], list[Map]]
"""Computes the cells of each crop of a frame: float32[maps, rows, columns]."""

_NEVER = -1


class Pace(Protocol):
    """When maps are recomputed; see settings.ClipSettings."""

    @property
    def interval(self) -> int: ...
    @property
    def stale(self) -> float: ...
    @property
    def wait(self) -> bool | None: ...


class AgedMaps(NamedTuple):
    """The maps at one frame."""

    maps: Map  # float32[maps, grid]
    age: int  # frames since the pixels that they were computed from; of several, the oldest


class _Request(NamedTuple):
    """Work for the thread, on the frame at which the track began."""

    crops: tuple[Crop, ...]
    frame: int  # counted from the first update
    result: Future[list[Map]]


class AsyncMaps:
    """Maps over the Grid of frames of one size.

    A crop is recomputed when the flow has lost more than the pace's share of its cells, and at the pace's interval if
    it has changed since. Keyframes other than periodic ones discard all. With ``wait`` every frame waits for the
    thread, so that two runs are equal; else the latest maps serve until it is done, and its result is warped from its
    frame to the current one.
    """

    def __init__(
        self, make: Make, count: int, crops: Sequence[Crop], pace: Pace, geometry: Geometry, thread: str
    ) -> None:
        """``make`` runs in a thread whose name begins with ``thread``, and returns ``count`` maps."""
        self._make = make
        self._count = count
        self._regions = crops
        self._pace = pace
        self._geometry = geometry
        self._thread = ThreadPoolExecutor(1, thread)
        self._request: _Request | None = None
        self._frame = 0
        self.begun = 0.0  # share of the picture's cells that the last update submitted
        self.forget()

    def forget(self) -> None:
        """Discard all maps, and the result of any work under way."""
        grid = self._geometry.grid
        if self._request is not None:
            self._request.result.cancel()
        self._request = None
        self._maps = np.zeros((self._count, *grid), np.float32)
        self._made = np.full(grid, _NEVER, np.int32)  # the frame that each cell was computed from
        self._stale = np.ones(grid, np.bool_)  # lost before the track began
        self._touched = np.zeros(grid, np.bool_)  # changed since it was computed
        self._track = FlowTrack(grid)

    def update(self, view: EmbedderInput) -> None:
        """Advance by one frame. Raises what ``make`` raised; the maps are kept then."""
        self._frame += 1
        self.begun = 0.0
        if view.keyframe not in (None, "periodic"):
            self.forget()
        else:
            self._track.follow(view.flow, view.valid)
            self._touched = self._touched | view.changed
        self._take(wait=False)
        if self._request is None and (due := self._due()):
            self._submit(due, view.frame)
        self._take(wait=view.frame.live is None if self._pace.wait is None else self._pace.wait)

    @property
    def made(self) -> AgedMaps | None:
        """The maps at the last frame; None while there are none."""
        inside = self._track.read_nearest(self._made)[self._geometry.inside]
        oldest = int(inside.min())
        return None if oldest == _NEVER else AgedMaps(self._track.read(self._maps), self._frame - oldest)

    @property
    def settled(self) -> bool:
        """True if another frame without any change would have the same maps: no work is under way."""
        return self._request is None

    def close(self) -> None:
        """Finish and discard the work under way, and stop the thread. Safe to call twice."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _due(self) -> tuple[Crop, ...]:
        """The crops to compute now."""
        lost = self._track.lost | self._track.read_nearest(self._stale)
        made = self._track.read_nearest(self._made)
        old = (made <= self._frame - self._pace.interval) & self._touched
        return tuple(crop for crop in self._regions if self._is_due(lost[crop.serves], old[crop.serves]))

    def _is_due(self, lost: Mask, old: Mask) -> bool:
        return bool(lost.all() or lost.mean() > self._pace.stale or old.any())

    def _submit(self, due: tuple[Crop, ...], frame: FrameView) -> None:
        """Begin a new track at this frame, and submit its due crops to the thread."""
        self._maps = self._track.read(self._maps)
        self._made = self._track.read_nearest(self._made)
        self._stale = self._track.lost | self._track.read_nearest(self._stale)
        self._track = FlowTrack(self._geometry.grid)
        for crop in due:
            self._touched[crop.serves] = False
        self.begun = sum(crop.cells for crop in due) / self._geometry.cells
        self._request = _Request(due, self._frame, self._thread.submit(self._make, frame, due))

    def _take(self, *, wait: bool) -> None:
        """Take over the thread's result, if it is ready or ``wait`` is set."""
        request = self._request
        if request is None or not (wait or request.result.done()):
            return
        self._request = None
        made = request.result.result()
        self._maps = self._maps.copy()  # callers may hold the old ones
        for crop, values in zip(request.crops, made, strict=True):
            self._maps[(slice(None), *crop.serves)] = values
            self._made[crop.serves] = request.frame
            self._stale[crop.serves] = False
