"""Calls background.c: frame differences and a learned static background, per cell."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.native.library import POINTER, address, kernel
from foveate.pipeline.spec.attributes import BACKGROUND_LEVEL as BACKGROUND_LEVEL
from foveate.pipeline.spec.light import MOMENTS, UNEXPLAINED

_update_background = kernel("update_background", POINTER, POINTER)


_KEPT = "known", "coloured", "last_change", "moments", "difference", "foreground"


class _Background(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p * 3) for name in ("now", "last", "background")),
        *((name, ctypes.c_void_p) for name in _KEPT),
        *((name, ctypes.c_int32) for name in ("rows", "columns", "frame", "learning_frames", "step")),
        ("unexplained", ctypes.c_float),
    )


class BackgroundState(NamedTuple):
    """State kept from frame to frame. Pictures are luma, Cb and Cr of level 2: uint8[3, h, w]."""

    last: NDArray[np.uint8]  # the previous frame
    background: NDArray[np.uint8]
    known: Mask  # bool[grid]: cells whose background has been learned
    coloured: NDArray[np.uint8]  # [grid]: working memory
    last_change: NDArray[np.int32]  # [grid]: the frame in which the cell last changed, other than by light
    moments: NDArray[np.int32]  # [MOMENTS, grid]: sums over each cell, in the order of spec.light.Moment
    difference: NDArray[np.float32]  # [grid]: share of the cell's samples that differ so from the previous frame
    foreground: NDArray[np.float32]  # [grid]: share that differs so from the background; -1 where that is unknown

    @classmethod
    def of(cls, geometry: Geometry) -> BackgroundState:
        """That of a stream of frames of one size, before the first."""
        grid = geometry.grid
        planes = np.zeros((2, 3, *geometry.level(BACKGROUND_LEVEL)), np.uint8)
        known, coloured = np.zeros(grid, np.bool_), np.zeros(grid, np.uint8)
        last_change, moments = np.zeros(grid, np.int32), np.zeros((MOMENTS, *grid), np.int32)
        maps = np.zeros((2, *grid), np.float32)
        return cls(planes[0], planes[1], known, coloured, last_change, moments, maps[0], maps[1])


def update_background(
    now: Sequence[NDArray[np.float32]],
    frame: int,
    geometry: Geometry,
    written: Mask,
    state: BackgroundState,
    learning_frames: int,
    step: int,
    unexplained: float = UNEXPLAINED,
) -> None:
    """Update ``state`` after frame number ``frame`` was written into the tiles of ``written``.

    ``now`` are luma, Cb and Cr of level 2, in 8-bit units and padded to whole tiles. A cell becomes
    background once no sample of it changed by more than ``step`` for more than ``learning_frames`` frames.
    Changes that light explains but for the share ``unexplained`` do not count; -inf: all count.
    """
    rows, columns = geometry.grid
    size = geometry.level(BACKGROUND_LEVEL)

    def planes(samples: Sequence[NDArray[np.float32]] | NDArray[np.uint8], kind: type[np.generic]) -> object:
        return (POINTER * 3)(*(address(plane, kind, size) for plane in samples))

    task = _Background(
        planes(now, np.float32),
        planes(state.last, np.uint8),
        planes(state.background, np.uint8),
        address(state.known, np.bool_, geometry.grid),
        address(state.coloured, np.uint8, geometry.grid),
        address(state.last_change, np.int32, geometry.grid),
        address(state.moments, np.int32, (MOMENTS, *geometry.grid)),
        address(state.difference, np.float32, geometry.grid),
        address(state.foreground, np.float32, geometry.grid),
        rows,
        columns,
        frame,
        learning_frames,
        step,
        unexplained,
    )
    _update_background(ctypes.byref(task), address(written, np.bool_, geometry.tiles))
