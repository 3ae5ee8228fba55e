"""The structs that the Cascade's kernels share, mirrored from cascade.cuh; both change together."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import CELL, ROOT, Geometry

CHOICE: Final[np.dtype[Any]] = np.dtype(
    [(name, np.int32) for name in ("low", "step", "ticket", "turn", "recomputed", "price")], align=True
)
"""struct Choice."""

HEADER: Final[np.dtype[Any]] = np.dtype(
    [(name, np.int32) for name in ("count", "changed", "keyframe", "recomputed", "rests", "number", "price", "turn")],
    align=True,
)
"""struct Header."""

TOKEN: Final[np.dtype[Any]] = np.dtype(
    [
        ("lod", np.int32),
        ("row", np.int32),
        ("column", np.int32),
        ("score", np.float32),
        ("information", np.float32),
        ("perspective", np.float32),
        ("participation", np.float32),
        ("age", np.int32),
        ("fresh", np.int32),
    ],
    align=True,
)
"""struct Token."""

GRID: Final[np.dtype[Any]] = np.dtype(
    [
        (name, np.int32)
        for name in (
            "rows",
            "columns",
            "inside_rows",
            "inside_columns",
            "merge",
            "unit_rows",
            "unit_columns",
            "roots",
            "root_columns",
        )
    ],
    align=True,
)
"""struct Grid."""

CONCLUSION: Final[np.dtype[Any]] = np.dtype(
    [
        ("frame", np.uint64),
        ("choice", np.uint64),
        ("header", np.uint64),
        ("fed", np.uint64),
        ("contented", np.int32),
    ],
    align=True,
)
"""struct Conclusion of block.cuh."""


def grid_of(geometry: Geometry, merge: int) -> NDArray[np.void]:
    """The struct Grid of a picture; ``merge`` is 1 or 2 cells along a unit."""
    grid = np.zeros((), GRID)
    rows, columns = geometry.grid
    inside_rows, inside_columns = -(-geometry.height // CELL), -(-geometry.width // CELL)
    root_rows, root_columns = -(-rows // merge // ROOT), -(-columns // merge // ROOT)
    grid["rows"], grid["columns"] = rows, columns
    grid["inside_rows"], grid["inside_columns"] = inside_rows, inside_columns
    grid["merge"] = merge
    grid["unit_rows"], grid["unit_columns"] = -(-inside_rows // merge), -(-inside_columns // merge)
    grid["roots"], grid["root_columns"] = root_rows * root_columns, root_columns
    return grid


def units_of(grid: NDArray[np.void]) -> int:
    """Level-0 nodes of all quadtrees, those off the grid included."""
    return int(grid["roots"]) * ROOT * ROOT
