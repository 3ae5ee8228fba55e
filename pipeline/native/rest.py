"""Calls rest.c: what differs from the picture before, and from what rested in a cell before anything came."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.native.library import POINTER, address, kernel
from foveate.pipeline.spec.attributes import REST_LEVEL as REST_LEVEL

_compare_rest = kernel("compare_rest", POINTER, POINTER)


class _Rest(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p * 3) for name in ("now", "last", "rest")),
        *((name, ctypes.c_void_p) for name in ("known", "stirred", "stirs", "moved")),
        *((name, ctypes.c_int32) for name in ("rows", "columns", "frame", "patience", "step")),
    )


class Memory(NamedTuple):
    """What is kept from frame to frame. Pictures are luma, Cb and Cr of level 2: uint8[3, h, w]."""

    last: NDArray[np.uint8]
    rest: NDArray[np.uint8]
    known: Mask  # bool[grid]: where ``rest`` holds anything
    stirred: NDArray[np.int32]  # [grid]: the frame in which the cell last changed
    stirs: NDArray[np.float32]  # [grid]: share of the cell's samples that differ from the picture before
    moved: NDArray[np.float32]  # [grid]: share that differs from what rested there; -1 where that is not known


def compare_rest(
    now: Sequence[NDArray[np.float32]],
    frame: int,
    geometry: Geometry,
    written: Mask,
    memory: Memory,
    patience: int,
    step: int,
) -> None:
    """Bring ``memory`` up to date after the tiles of ``written`` were written with frame number ``frame``.

    ``now`` are luma, Cb and Cr of level 2, in 8-bit units and padded to whole tiles. A cell rests where no sample
    changed by more than ``step`` for more than ``patience`` frames.
    """
    rows, columns = geometry.grid
    size = geometry.level(REST_LEVEL)

    def planes(samples: Sequence[NDArray[np.float32]] | NDArray[np.uint8], kind: type[np.generic]) -> object:
        return (POINTER * 3)(*(address(plane, kind, size) for plane in samples))

    task = _Rest(
        planes(now, np.float32),
        planes(memory.last, np.uint8),
        planes(memory.rest, np.uint8),
        address(memory.known, np.bool_, geometry.grid),
        address(memory.stirred, np.int32, geometry.grid),
        address(memory.stirs, np.float32, geometry.grid),
        address(memory.moved, np.float32, geometry.grid),
        rows,
        columns,
        frame,
        patience,
        step,
    )
    _compare_rest(ctypes.byref(task), address(written, np.bool_, geometry.tiles))
