"""Calls reader.c: errors of the reader's picture."""

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import CELL, Geometry, Mask
from foveate.pipeline.native.library import POINTER, Plane, address, kernel, plane

_INT = ctypes.c_int32
_reader_error = kernel(
    "reader_error",
    POINTER, POINTER, POINTER, POINTER, POINTER, ctypes.c_float, _INT, _INT, POINTER, POINTER,
)  # fmt: skip
_reader_residuals = kernel("reader_residuals", *[POINTER] * 4, _INT, _INT, *[POINTER] * 3, _INT)
_Planes = Sequence[NDArray[np.uint8]]


def reader_error(
    shown: _Planes,
    truth: _Planes,
    weights: Sequence[float],
    seen: Mask,
    unseen: float,
    geometry: Geometry,
    tiles: Mask,
    error: NDArray[np.float32],
) -> None:
    """Set ``error``, float32[grid], over ``tiles``: squared differences summed over each cell, by the planes' weights.

    Cells that are not ``seen``, bool[grid], get ``unseen``. The planes of ``truth`` are padded to whole tiles, those of
    ``shown`` are as large or larger. Raises ValueError for smaller ones.
    """
    rows, columns = geometry.grid
    sides = [CELL * true.shape[1] // (columns * CELL) for true in truth]
    for mine, true, side in zip(shown, truth, sides, strict=True):
        if (
            true.shape != (rows * side, columns * side)
            or mine.shape[0] < true.shape[0]
            or mine.shape[1] < true.shape[1]
        ):
            raise ValueError(f"planes must cover {rows}x{columns} cells, got {mine.shape} and {true.shape}")
    both = ((Plane * 3)(*map(plane, planes)) for planes in (shown, truth))
    mask = address(tiles, np.bool_, geometry.tiles)
    seen_at, error_at = address(seen, np.bool_, geometry.grid), address(error, np.float32, geometry.grid)
    counts = (_INT * 3)(*sides), (ctypes.c_double * 3)(*weights)
    _reader_error(*both, *counts, seen_at, unseen, rows, columns, mask, error_at)


def update_residuals(
    changed: Mask,
    settled: Mask,
    lod: NDArray[np.uint8],
    error: NDArray[np.float32],
    geometry: Geometry,
    painted: Mask,
    outdated: Mask,
    residual: NDArray[np.float32],
) -> None:
    """Update ``residual``, float32[levels, grid], the error after a token of LOD 1, 2 ... was shown, and
    ``outdated``, bool[grid], the cells that changed since they were painted; clear ``painted``, bool[grid].

    ``changed`` and ``settled`` are bool[tiles]: those that changed in this frame, and those that changed in the
    previous frame but not in this one. A change of a cell, or the end of a change beside it, resets its residuals.
    """
    grid, rows, columns = geometry.grid, *geometry.grid
    tiles = (address(mask, np.bool_, geometry.tiles) for mask in (changed, settled))
    cells = (address(mask, np.bool_, grid) for mask in (painted, outdated))
    shown = address(lod, np.uint8, grid), address(error, np.float32, grid)
    levels = len(residual)
    _reader_residuals(*tiles, *shown, rows, columns, *cells, address(residual, np.float32, (levels, *grid)), levels)
