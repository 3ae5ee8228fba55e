"""The structs that the Cascade's kernels share, mirrored from cascade.cuh; both change together."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import CELL, ROOT, TOP_LEVEL, Geometry

CHOICE: Final[np.dtype[Any]] = np.dtype(
    [(name, np.int32) for name in ("low", "step", "ticket", "turn", "recomputed", "price")], align=True
)
"""struct Choice."""

HEADER: Final[np.dtype[Any]] = np.dtype(
    [
        (name, np.int32)
        for name in ("count", "changed", "keyframe", "recomputed", "rests", "number", "price", "debt", "turn")
    ],
    align=True,
)
"""struct Header."""

TOKEN: Final[np.dtype[Any]] = np.dtype([(name, np.int32) for name in ("lod", "row", "column")], align=True)
"""struct Token."""

READ: Final[dict[str, np.dtype[Any]]] = {
    **dict.fromkeys(("x", "y", "age"), np.dtype(np.int32)),
    **dict.fromkeys(("score", "information", "perspective", "participation"), np.dtype(np.float32)),
    "lod": np.dtype(np.uint8),
    "fresh": np.dtype(np.bool_),
}
"""What the host reads of each token, in the order of the columns behind the Header."""

COLUMNS: Final[np.dtype[Any]] = np.dtype([(name, np.uint64) for name in READ], align=True)
"""struct Columns."""

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
            "root_rows",
            "root_columns",
            "top",
        )
    ],
    align=True,
)
"""struct Grid."""

RATE: Final[np.dtype[Any]] = np.dtype(
    [
        ("debt", np.uint64),
        ("burst", np.float64),
        ("depth", np.int32),
        ("steps", np.int32),
        ("average", np.int32),
        ("owed", np.int32),
    ],
    align=True,
)
"""struct Rate of allocate.cu."""

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
    """The struct Grid of a picture; ``merge`` is 1, 2 or 3 cells along a unit."""
    grid = np.zeros((), GRID)
    rows, columns = geometry.grid
    inside_rows, inside_columns = -(-geometry.height // CELL), -(-geometry.width // CELL)
    root_rows, root_columns = -(-rows // merge // ROOT), -(-columns // merge // ROOT)
    grid["rows"], grid["columns"] = rows, columns
    grid["inside_rows"], grid["inside_columns"] = inside_rows, inside_columns
    grid["merge"] = merge
    grid["unit_rows"], grid["unit_columns"] = -(-inside_rows // merge), -(-inside_columns // merge)
    grid["roots"], grid["root_rows"], grid["root_columns"] = root_rows * root_columns, root_rows, root_columns
    grid["top"] = TOP_LEVEL
    return grid


def upper_size(rows: int, columns: int, top: int) -> int:
    """Values in the levels above TOP_LEVEL up to ``top``, where that has ``rows`` x ``columns``; see cascade.cuh."""
    halves = (1 << above for above in range(1, top - TOP_LEVEL + 1))
    return sum(-(-rows // half) * -(-columns // half) for half in halves)


def record_size(room: int) -> int:
    """Bytes of a Header and the columns of ``room`` tokens."""
    return HEADER.itemsize + room * sum(column.itemsize for column in READ.values())


def offsets(room: int) -> dict[str, int]:
    """Where the columns of ``room`` tokens begin in their record, in bytes."""
    sizes = [room * column.itemsize for column in READ.values()]
    return dict(zip(READ, accumulate(sizes, initial=HEADER.itemsize), strict=False))


def units_of(grid: NDArray[np.void]) -> int:
    """Level-0 nodes of all quadtrees, those off the grid included."""
    return int(grid["roots"]) * ROOT * ROOT


def blocks_of(grid: NDArray[np.void], threads: int) -> int:
    """Blocks of so many threads in which each cell of each unit has a thread; see threads_of_unit() in cascade.cuh."""
    return units_of(grid) * 4 ** (int(grid["merge"]) - 1) // threads
