"""The Pyramid stage: writes the tiles of an Update, and rebuilds exactly what depends on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cpu.attributes import AttributeStack
from foveate.pipeline.cpu.change import planes_of
from foveate.pipeline.cpu.levels import LevelRing, Levels
from foveate.pipeline.cpu.stack import ChannelStack
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.geometry import TOP_LEVEL, Map
from foveate.pipeline.native.edge_distance import edge_distance
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.spec.local_channels import EDGE_CELL as EDGE_CELL
from foveate.pipeline.spec.local_channels import EDGE_REACH as EDGE_REACH


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What the Cascade reads of one frame. Everything but ``levels`` is a copy."""

    update: Update
    errors: tuple[Map, ...]  # float32[grid]: squared error over the cell when shown at level 1, 2, 3, 4
    picture: NDArray[np.uint8]  # luma at the flow level
    colours: tuple[Map, Map, Map]  # luma, Cb, Cr of each cell, in 8-bit units
    grid: dict[str, Map]  # channels by name, float32[grid]
    levels: Levels  # unchanged while the next ``copies - 1`` frames are written


def pyramid(updates: Iterable[Update], plan: StreamPlan, copies: int) -> Iterator[State]:
    """Yield one State per Update. With one copy of the levels, read them before asking for the next State."""
    engine: _Pyramid | None = None
    for update in updates:
        if engine is None or update.keyframe in ("first", "size"):
            engine = _Pyramid(update, plan, copies)
        yield engine.write(update)


class _Pyramid:
    """Levels and channels of a stream of frames of one size."""

    def __init__(self, update: Update, plan: StreamPlan, copies: int) -> None:
        frame, geometry = update.frame, update.geometry
        self._ring = LevelRing(geometry, frame.subsampled, copies)
        self._stack = ChannelStack(geometry, plan.settings.analysis_level, frame.colour)
        self._attributes = AttributeStack(geometry, frame.colour) if plan.attributes else None
        self._flow_level = plan.settings.cache.flow_level
        self._last: State | None = None

    def write(self, update: Update) -> State:
        """Write one Update, and gather what the Cascade reads."""
        still = not update.writes
        if self._last is not None and still and not self._stack.moving:
            self._last = replace(self._last, update=update)
            return self._last
        moving = not still and not update.new_scene and bool(update.changed.any())
        motion = self._stack.begin_motion(self._ring.newest, update, moving)
        levels = self._ring.newest
        if not still:
            levels = self._ring.update(planes_of(update.frame), update.written, motion)
            self._stack.update(levels, update.written)
            if self._attributes is not None:
                frame, new_scene, noise = update.frame, update.new_scene, update.noise
                self._attributes.update(levels, update.written, frame.index, new_scene, noise)
        self._last = self._state(update, levels)
        return self._last

    def _state(self, update: Update, levels: Levels) -> State:
        grid = {name: values.copy() for name, values in self._stack.grid.items()}
        grid["edge_distance"] = edge_distance(grid["edges"], grid["edges_inverted"], EDGE_CELL, EDGE_REACH)
        if self._attributes is not None:
            grid |= self._attributes.maps()
        return state_of(update, levels, grid, self._flow_level)


def state_of(update: Update, levels: Levels, grid: dict[str, Map], flow_level: int) -> State:
    """The State of the frame in ``levels``; ``grid`` is not copied."""
    luma, cb, cr = (np.array(pyramid.level(TOP_LEVEL), np.float32) for pyramid in levels.planes)
    return State(
        update,
        tuple(error.copy() for error in levels.errors),
        np.rint(levels.luma.level(flow_level)).astype(np.uint8),
        (luma, cb, cr),
        grid,
        levels,
    )
