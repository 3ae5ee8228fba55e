"""Structs that the Cascade's kernels share, read from the CUDA source."""

from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.structs import layouts
from foveate.pipeline.geometry import CELL, ROOT, TOP_LEVEL, Geometry

_STRUCTS: Final = layouts(Path(__file__).with_name("block.cuh"))

CASCADE_STATE: Final = _STRUCTS["CascadeState"]
TURN_OFFSET: Final = np.dtype(np.int32).itemsize * (CASCADE_STATE.names or ()).index("turn")  # bytes
HEADER: Final = _STRUCTS["Header"]
TOKEN: Final = _STRUCTS["Token"]
COLUMNS: Final = _STRUCTS["Columns"]
GRID: Final = _STRUCTS["Grid"]
CONCLUSION: Final = _STRUCTS["Conclusion"]
RATE: Final = layouts(Path(__file__).with_name("rate_distortion.cu"))["Rate"]


READ: Final[dict[str, np.dtype[Any]]] = {
    **dict.fromkeys(("x", "y", "age"), np.dtype(np.int32)),
    **dict.fromkeys(("score", "information", "perspective", "participation"), np.dtype(np.float32)),
    "lod": np.dtype(np.uint8),
    "fresh": np.dtype(np.bool_),
}
"""What the host reads of each token, in the order of the columns behind the Header."""


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
