"""The Pyramid stage: writes the tiles of an Update, and rebuilds exactly the levels and channels that depend on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cpu.change import planes_of
from foveate.pipeline.cpu.levels import LevelRing, Levels
from foveate.pipeline.cpu.local_channels import Map
from foveate.pipeline.cpu.stack import ChannelStack
from foveate.pipeline.update import Update

EDGE_CELL = 0.1
"""A cell is an edge cell where edges or edges_inverted exceed this: a step of about a tenth of the range."""
EDGE_REACH = 8  # cells; edge_distance is in this unit


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What the Cascade reads of one frame. ``levels`` stays as it is while the next few frames are written."""

    update: Update
    levels: Levels
    grid: dict[str, Map]  # channels by name, float32[grid]


def pyramid(updates: Iterable[Update], analysis_level: int, copies: int) -> Iterator[State]:
    """Yield one State per Update; a State's levels stay valid for the next ``copies - 1`` States."""
    engine: _Pyramid | None = None
    for update in updates:
        if engine is None or update.keyframe in ("first", "size"):
            engine = _Pyramid(update, analysis_level, copies)
        yield engine.write(update)


class _Pyramid:
    """Levels and channels of a stream of frames of one size."""

    def __init__(self, update: Update, analysis_level: int, copies: int) -> None:
        frame, geometry = update.frame, update.geometry
        self._ring = LevelRing(geometry, frame.subsampled, copies)
        self._stack = ChannelStack(geometry, analysis_level, frame.colour)
        self._grid: dict[str, Map] = {}
        self._was_moving = False

    def write(self, update: Update) -> State:
        previous = None if update.forgets else self._ring.newest
        moving = previous is not None and bool(update.changed.any())
        if update.written.any():
            levels = self._ring.update(planes_of(update.frame), update.written)
            self._stack.update(levels, update.written)
        else:
            levels = self._ring.newest
        if moving or self._was_moving:
            self._stack.set_motion(levels, previous, update)
        if moving or self._was_moving or update.keyframe:
            self._grid = self._snapshot()
        self._was_moving = moving
        return State(update, levels, self._grid)

    def _snapshot(self) -> dict[str, NDArray[np.float32]]:
        grid = {name: values.copy() for name, values in self._stack.grid.items()}
        grid["edge_distance"] = edge_distance(grid["edges"], grid["edges_inverted"])
        return grid


def edge_distance(edges: Map, edges_inverted: Map) -> Map:
    """Distance of each cell to the nearest edge cell, / 8 cells, clipped to 1. float32[grid]."""
    flat = (np.maximum(edges, edges_inverted) <= EDGE_CELL).astype(np.uint8)
    if flat.all():
        return np.ones(edges.shape, np.float32)
    distance = np.asarray(cv2.distanceTransform(flat, cv2.DIST_L2, cv2.DIST_MASK_PRECISE))
    return np.minimum(distance / np.float32(EDGE_REACH), np.float32(1.0))
