"""Calls pruning.c: the tokens of the quadtree with the least weighted squared error for a budget."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.native.library import POINTER, address, kernel

_LEVELS = TOP_LEVEL + 1
_INT = ctypes.c_int32

Map = NDArray[np.float32]


class _Quadtree(ctypes.Structure):
    _fields_ = (
        ("source", ctypes.c_void_p),
        ("inside", ctypes.c_void_p),
        ("units", ctypes.c_void_p * _LEVELS),
        ("row", ctypes.c_void_p * _LEVELS),
        ("column", ctypes.c_void_p * _LEVELS),
        ("nodes", ctypes.c_int32 * _LEVELS),
        ("unit_columns", ctypes.c_int32),
        ("merge", ctypes.c_int32),
    )


class _Task(ctypes.Structure):
    _fields_ = (
        ("weight", ctypes.c_void_p),
        ("errors", ctypes.c_void_p * TOP_LEVEL),
        ("kept", ctypes.c_void_p),
        ("prices", ctypes.c_void_p),
        ("least", ctypes.c_int32),
        ("most", ctypes.c_int32),
        ("guess", ctypes.c_int32),
        ("budget", ctypes.c_int32),
        ("min_gain", ctypes.c_float),
    )


_allocation_memory = kernel("allocation_memory", POINTER, result=ctypes.c_int64)
_allocate_tokens = kernel(
    "allocate_tokens", POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, result=ctypes.c_int32
)


class Costs(NamedTuple):
    """What decides. Maps are float32[grid of cells]."""

    weight: Map
    errors: Sequence[Map]  # squared error of a cell when shown at level 1, 2, 3, 4
    kept: Map | None  # squared error of a cell that gets no token; None: every cell inside gets one


class Prices(NamedTuple):
    """Where the price per token is looked for."""

    prices: NDArray[np.float32]  # ascending; the last one must be dear enough for any picture
    least: int  # the first that may be chosen
    guess: int  # where to look first


class Chosen(NamedTuple):
    """Tokens from coarse to fine, then row by row, and the index of their price."""

    lod: NDArray[np.uint8]
    row: NDArray[np.int32]  # in units of 2**lod cells
    column: NDArray[np.int32]
    price: int


class Allocator:
    """Allocates over one quadtree, whose units are ``merge`` x ``merge`` cells. For one thread.

    ``source`` int32[n] gives the place of each level-0 node in the grid of units, or -1; ``units``, ``row`` and
    ``column`` have one int32 array per level; the order is child-major, see pruning.c.
    """

    def __init__(
        self,
        source: NDArray[np.int32],
        units: Sequence[NDArray[np.int32]],
        place: Sequence[tuple[NDArray[np.int32], NDArray[np.int32]]],
        unit_columns: int,
        merge: int,
    ) -> None:
        nodes = [len(values) for values in units]
        inside = (units[0] > 0).view(np.uint8)
        rows, columns = ([pair[axis] for pair in place] for axis in (0, 1))
        self._arrays: tuple[Any, ...] = (
            source,
            inside,
            *units,
            *rows,
            *columns,
        )  # they must live as long as the struct

        def per_level(arrays: Sequence[NDArray[np.int32]]) -> ctypes.Array[ctypes.c_void_p]:
            pairs = zip(arrays, nodes, strict=True)
            return (POINTER * _LEVELS)(*(address(values, np.int32, (count,)) for values, count in pairs))

        self._quadtree = _Quadtree(
            address(source, np.int32, (nodes[0],)),
            inside.ctypes.data,
            per_level(units),
            per_level(rows),
            per_level(columns),
            (_INT * _LEVELS)(*nodes),
            unit_columns,
            merge,
        )
        self._merge = merge
        self._memory = np.empty(_allocation_memory(ctypes.byref(self._quadtree)), np.uint8)

    def allocate(self, costs: Costs, budget: int, prices: Prices, min_gain: float) -> Chosen:
        """The tokens of the tree with the lowest price that fits ``budget`` units, and what is left over spent as well.

        A step of spending what is left must gain more than ``min_gain`` per token.
        """
        shape = costs.weight.shape
        task = _Task(
            address(costs.weight, np.float32, shape),
            (POINTER * TOP_LEVEL)(*(address(error, np.float32, shape) for error in costs.errors)),
            None if costs.kept is None else address(costs.kept, np.float32, shape),
            address(prices.prices, np.float32, prices.prices.shape),
            prices.least,
            len(prices.prices) - 1,
            prices.guess,
            budget,
            min_gain,
        )
        most = min(budget, len(self._arrays[0])) * self._merge**2
        lod, row, column = np.empty(most, np.uint8), np.empty(most, np.int32), np.empty(most, np.int32)
        price = _INT()
        places = (values.ctypes.data for values in (lod, row, column))
        count = _allocate_tokens(
            ctypes.byref(self._quadtree), ctypes.byref(task), self._memory.ctypes.data, *places, ctypes.byref(price)
        )
        return Chosen(lod[:count].copy(), row[:count].copy(), column[:count].copy(), price.value)
