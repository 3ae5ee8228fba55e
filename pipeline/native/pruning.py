"""Calls pruning.c: the tokens of the quadtree with the least weighted squared error for a budget."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import MOST_LOD, TOP_LEVEL, Map
from foveate.pipeline.native.library import POINTER, address, kernel
from foveate.pipeline.quadtree import Quadtree

_LEVELS = MOST_LOD + 1
_INT = ctypes.c_int32


class _Quadtree(ctypes.Structure):
    _fields_ = (
        ("source", ctypes.c_void_p),
        ("inside", ctypes.c_void_p),
        ("units", ctypes.c_void_p * _LEVELS),
        ("row", ctypes.c_void_p * _LEVELS),
        ("column", ctypes.c_void_p * _LEVELS),
        ("nodes", ctypes.c_int32 * _LEVELS),
        ("rows", ctypes.c_int32 * _LEVELS),
        ("columns", ctypes.c_int32 * _LEVELS),
        ("cell_rows", ctypes.c_int32),
        ("cell_columns", ctypes.c_int32),
        ("merge", ctypes.c_int32),
    )


class _Task(ctypes.Structure):
    _fields_ = (
        ("weight", ctypes.c_void_p),
        ("errors", ctypes.c_void_p * MOST_LOD),
        ("kept", ctypes.c_void_p),
        ("prices", ctypes.c_void_p),
        ("least", ctypes.c_int32),
        ("most", ctypes.c_int32),
        ("guess", ctypes.c_int32),
        ("budget", ctypes.c_int32),
        ("top", ctypes.c_int32),
        ("min_gain", ctypes.c_float),
    )


_allocation_memory = kernel("allocation_memory", POINTER, result=ctypes.c_int64)
_allocate_tokens = kernel(
    "allocate_tokens", POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, result=ctypes.c_int32
)


class Costs(NamedTuple):
    """Costs of an allocation. Maps are float32[grid of cells]."""

    weight: Map
    errors: Sequence[Map]  # squared error of a cell when shown at level 1, 2 .. top, the coarsest of the tokens
    kept: Map | None  # squared error of a cell that gets no token; None: every cell inside gets one


class Prices(NamedTuple):
    """The prices per token to search."""

    prices: NDArray[np.float32]  # ascending; the last one must fit any picture into the budget
    least: int  # index of the lowest that may be chosen
    guess: int  # index to try first


class Chosen(NamedTuple):
    """The chosen nodes, coarse to fine, then row by row; each is a token or a group of tokens."""

    lod: NDArray[np.uint8]
    row: NDArray[np.int32]  # in nodes of that level
    column: NDArray[np.int32]
    price: int  # index


class Allocator:
    """Allocates over one quadtree, whose units are ``merge`` x ``merge`` cells. For one thread."""

    def __init__(self, tree: Quadtree, grid: tuple[int, int], merge: int) -> None:
        """``tree`` is made of units of the ``grid`` of cells (rows, columns)."""
        inside = (tree.units[0] > 0).view(np.uint8)
        self._arrays = (tree, inside)  # keeps alive what the struct points at
        nodes = [len(values) for values in tree.units]

        def per_level(arrays: Sequence[NDArray[np.int32]]) -> ctypes.Array[ctypes.c_void_p]:
            pairs = zip(arrays, nodes, strict=True)
            return (POINTER * _LEVELS)(*(address(values, np.int32, (count,)) for values, count in pairs))

        rows, columns = ([0] * TOP_LEVEL + [shape[axis] for shape in tree.shapes] for axis in (0, 1))
        self._quadtree = _Quadtree(
            address(tree.source, np.int32, (nodes[0],)),
            inside.ctypes.data,
            per_level(tree.units),
            per_level([row for row, _ in tree.places]),
            per_level([column for _, column in tree.places]),
            (_INT * _LEVELS)(*nodes),
            (_INT * _LEVELS)(*rows),
            (_INT * _LEVELS)(*columns),
            *grid,
            merge,
        )
        self._top, self._most = len(nodes) - 1, nodes[0]
        self._memory = np.empty(_allocation_memory(ctypes.byref(self._quadtree)), np.uint8)

    def allocate(self, costs: Costs, budget: int, prices: Prices, min_gain: float) -> Chosen:
        """The tokens of the tree of the lowest price that fits ``budget`` units; tokens left over refine it.

        A step of that refinement must gain more than ``min_gain`` per token. Without ``kept`` the budget must be enough
        for all nodes of the top level.
        """
        shape, top = costs.weight.shape, min(len(costs.errors), self._top)
        task = _Task(
            address(costs.weight, np.float32, shape),
            (POINTER * MOST_LOD)(*(address(error, np.float32, shape) for error in costs.errors)),
            None if costs.kept is None else address(costs.kept, np.float32, shape),
            address(prices.prices, np.float32, prices.prices.shape),
            prices.least,
            len(prices.prices) - 1,
            prices.guess,
            budget,
            top,
            min_gain,
        )
        most = min(budget, self._most)
        lod, row, column = np.empty(most, np.uint8), np.empty(most, np.int32), np.empty(most, np.int32)
        price = _INT()
        places = (values.ctypes.data for values in (lod, row, column))
        count = _allocate_tokens(
            ctypes.byref(self._quadtree), ctypes.byref(task), self._memory.ctypes.data, *places, ctypes.byref(price)
        )
        return Chosen(lod[:count].copy(), row[:count].copy(), column[:count].copy(), price.value)
