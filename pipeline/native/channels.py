"""Calls channels.c: the local channels of all cells within reach of a change."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.geometry import CELL, TOP_LEVEL, Geometry, Mask
from foveate.pipeline.native.library import POINTER, address, kernel
from foveate.pipeline.spec.local_channels import LOWPASS_LEVEL, SALIENCY_LEVEL

_local_channels = kernel("local_channels", POINTER, POINTER, result=ctypes.c_int32)
_NAMES = ("edges", "edges_inverted", "highpass", "lowpass", "saliency")
_MARGIN = -(-max(BY_NAME[name].reach or 0 for name in _NAMES) // CELL)


class _Channels(ctypes.Structure):
    _fields_ = (
        ("luma", ctypes.c_void_p),
        ("low", ctypes.c_void_p),
        ("centre", ctypes.c_void_p * 3),
        ("surround", ctypes.c_void_p * 3),
        *((name, ctypes.c_void_p) for name in _NAMES),
        ("level", ctypes.c_int32),
        ("rows", ctypes.c_int32),
        ("columns", ctypes.c_int32),
        ("margin", ctypes.c_int32),
        ("black", ctypes.c_float),
        ("span", ctypes.c_float),
        ("luma_gain", ctypes.c_float),
        ("chroma_gain", ctypes.c_float),
    )


class Gains(NamedTuple):
    """Black and the span of luma in 8-bit units, and what a grey value of contrast adds to the saliency."""

    black: float
    span: float
    luma: float
    chroma: float


class Sources(NamedTuple):
    """What the channels are computed from, in 8-bit units and padded to whole tiles.

    ``luma`` is that of the analysis level (uint8 at level 0, else float32), ``low`` that of level 3; ``centre`` and
    ``surround`` are luma, Cb and Cr of levels 2 and 4.
    """

    luma: NDArray[Any]
    low: NDArray[np.float32]
    centre: Sequence[NDArray[np.float32]]
    surround: Sequence[NDArray[np.float32]]


def local_channels(
    sources: Sources,
    level: int,
    gains: Gains,
    geometry: Geometry,
    written: Mask,
    grid: Mapping[str, NDArray[np.float32]],
) -> None:
    """Recompute the local channels except motion, float32[grid], of all cells within reach of the ``written`` tiles.

    ``level`` is the analysis level, 0..2. Raises MemoryError.
    """
    rows, columns = geometry.grid

    def at(samples: NDArray[Any], sampled: int) -> int:
        side = CELL >> sampled
        return address(samples, np.float32 if sampled else np.uint8, (rows * side, columns * side))

    task = _Channels(
        at(sources.luma, level),
        at(sources.low, LOWPASS_LEVEL),
        (POINTER * 3)(*(at(samples, SALIENCY_LEVEL) for samples in sources.centre)),
        (POINTER * 3)(*(at(samples, TOP_LEVEL) for samples in sources.surround)),
        *(address(grid[name], np.float32, geometry.grid) for name in _NAMES),
        level,
        rows,
        columns,
        _MARGIN,
        *gains,
    )
    if _local_channels(ctypes.byref(task), address(written, np.bool_, geometry.tiles)):
        raise MemoryError("no memory for the local channels")
