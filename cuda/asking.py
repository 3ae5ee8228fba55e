"""Queries on the GPU: the host's part of a frame, between its pixels and its scores.

What cells are like is worked out by the CPU engine's own code, from levels that the device hands over: embeddings have
their pace, and the regions of a picture are no work for a GPU. So both engines find the same. What is relevant among
them is found on the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.arrays import Arrays
from foveate.cuda.device import Stream
from foveate.cuda.frames import AnyFrame
from foveate.cuda.hand_over import update_of
from foveate.cuda.memory import DeviceArray, Memory
from foveate.cuda.query.relevance import Relevance
from foveate.cuda.state import PixelState, PlaneLevels
from foveate.pipeline.cascade.cache import Cache, Flow, Map
from foveate.pipeline.cascade.feedback import Fed
from foveate.pipeline.cpu.attributes import AttributeStack
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.geometry import Mask, tiles_to_cells
from foveate.pipeline.native.attributes import COLOUR_LEVEL, STROKE_LEVEL
from foveate.pipeline.query.asked import Asked
from foveate.pipeline.query.encoder import View
from foveate.pipeline.query.interest import Interest
from foveate.pipeline.query.program import COEFFICIENTS, Program
from foveate.pipeline.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class HostPlane:
    """One plane of the picture at the levels that were handed over."""

    levels: dict[int, NDArray[Any]]

    def level(self, level: int) -> NDArray[Any]:
        """The samples of ``level``; see pipeline.cpu.levels.PlanePyramid."""
        return self.levels[level]


@dataclass(frozen=True, slots=True, eq=False)
class HostLevels:
    """The picture as far as it was handed over; the names are those of pipeline.cpu.levels.Levels."""

    planes: tuple[HostPlane, HostPlane, HostPlane]

    @property
    def luma(self) -> HostPlane:
        """The first plane."""
        return self.planes[0]


class Asking:
    """Looks at each frame of one size, and tells the device which of its cells take part."""

    def __init__(
        self,
        memory: Memory,
        pixels: PixelState,
        arrays: Arrays,
        settings: Settings,
        asked: Asked,
        given: bool,
        stream: Stream,
    ) -> None:
        """``given``: the flow of all cells is given, not only that of the changed ones. Raises EngineError."""
        geometry = pixels.geometry
        self._geometry, self._given, self._caches = geometry, given, settings.cache.enabled
        self._interest = Interest(asked, geometry)
        self._attributes = AttributeStack(geometry, pixels.colour) if settings.attributes else None
        self._ages = Cache(geometry.grid, (), (), settings.cache)
        self._participation = memory.array("participation", geometry.grid, np.float32, stream)
        self.embeddings = memory.array("embeddings", (COEFFICIENTS, *geometry.grid), np.float32, stream)
        self._grid: dict[str, Map] = {}  # maps of the pixels that were written last
        self._fetched: list[tuple[NDArray[Any], DeviceArray]] = []

        def handed(array: DeviceArray) -> NDArray[Any]:
            host = memory.pinned(array.shape or (1,), array.dtype)
            self._fetched.append((host, array))
            return host

        self._frame = handed(pixels.frame)
        self._changed, self._written, self._flow = handed(pixels.changed), handed(pixels.written), handed(arrays.flow)
        self._levels = _levels(pixels.planes, handed) if settings.attributes else None
        self._sent = memory.pinned(self.embeddings.shape, np.float32)
        self._relevance = Relevance(memory.device, geometry)
        self._program: Program | None = None  # what was asked last

    def fetch(self, stream: Stream) -> None:
        """Enqueue the copies of what ``look`` reads, behind the frame's pixels and flow."""
        from pycuda import driver

        for host, array in self._fetched:
            driver.memcpy_dtoh_async(host, array.pointer, stream)

    def look(self, frame: AnyFrame, fed: Fed, stream: Stream) -> DeviceArray | None:
        """Enqueue what makes ``frame``'s participation, float32[grid]; None where nothing is asked, or known yet.

        What was fetched must have arrived.
        """
        update = update_of(frame, self._geometry, self._frame, self._changed, self._written)
        if self._attributes is not None and update.writes:
            assert self._levels is not None
            self._attributes.update(self._levels, update.written, frame.index, update.forgets)
            self._grid = self._attributes.maps()
        changed = np.asarray(tiles_to_cells(update.changed), np.bool_)
        flow, valid = self._follow(update, changed)
        self._interest.feed(fed)
        view = View(frame, self._geometry, update.keyframe, changed, flow, valid, self._grid)
        self._interest.look(view)
        self._ages.renew(valid)
        self._sent[:] = self._interest.coefficients
        self.embeddings.copy_from(self._sent, stream)
        return self._answer(self._interest.program, stream)

    def _answer(self, program: Program | None, stream: Stream) -> DeviceArray | None:
        if program is None:
            return None
        if program is not self._program:
            self._relevance.ask(program, stream)
            self._program = program
        self._relevance.enqueue(self.embeddings, self._participation, stream)
        return self._participation

    def extras(self, fed: Fed) -> dict[str, Any]:
        """For the last frame's record; see Interest."""
        return self._interest.extras(fed)

    def map(self, name: str) -> Map:
        """The last frame's map "query" or "query:TEXT", or its channel clip<index> or text: float32[grid]."""
        return self._grid[name] if name in self._grid else self._interest.map(name)

    def close(self) -> None:
        """End the embedder's threads, and give memory back. Safe to call twice."""
        self._interest.close()
        self._relevance.free()

    def _follow(self, update: Update, changed: Mask) -> tuple[Flow | None, Mask]:
        """The frame's flow, and the cells whose carried maps may be reused: as carry.cu finds it."""
        if update.keyframe is not None or not self._caches:
            self._ages.clear()
            return None, np.zeros(self._geometry.grid, np.bool_)
        flow = None
        if update.changed.any():
            dx, dy, confidence = self._flow.copy()
            if not self._given:
                dx[~changed] = dy[~changed] = 0
                confidence[~changed] = 1
            flow = Flow(dx, dy, confidence)
        return flow, self._ages.follow(flow)


def _levels(planes: tuple[PlaneLevels, PlaneLevels, PlaneLevels], handed: Any) -> HostLevels:
    """Host arrays for the levels that the attributes are made from."""
    luma, cb, cr = planes
    fine = {STROKE_LEVEL: handed(luma.level(STROKE_LEVEL)), COLOUR_LEVEL: handed(luma.level(COLOUR_LEVEL))}
    blue, red = ({COLOUR_LEVEL: handed(plane.level(COLOUR_LEVEL))} for plane in (cb, cr))
    return HostLevels((HostPlane(fine), HostPlane(blue), HostPlane(red)))
