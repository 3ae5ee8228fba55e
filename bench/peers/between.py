"""Tokens between the LODs: trees whose nodes may be halved along one side only, and trees over cells of other sizes.

An experiment beside the product, without its code. A token covers 2**across x 2**down cells, of ``unit`` pixels a side,
by 16 x 16 samples. Errors are those of the painted pixels, in all planes; per frame the tree is the best one for the
lowest price per token that fits the budget (Chou, Lookabaugh and Gray, "Optimal pruning with applications to
tree-structured source coding and modeling", 1989).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import CELL, Footage, Picture, Plane
from foveate.bench.peers.sent import Method, Sent, of_mask
from foveate.bench.reader.painting import ReaderPicture

Shape = tuple[int, int]  # binary logarithms of the cells that a token covers, across and down
Nodes = NDArray[np.float64]  # [rows, columns] of nodes of one shape

_TOP: Final = 4
_PRICES: Final = 2.0 ** np.arange(
    6, 34, 1 / 64
)  # from the product's min_gain on; the last is beyond any picture's error
_NONE, _LEAF, _ACROSS, _DOWN, _QUARTERS = range(5)  # what becomes of a node


class Family(NamedTuple):
    """The trees that may be chosen: of which shapes, over cells of which sizes. Per frame, the best size is taken."""

    shapes: frozenset[Shape]
    units: Sequence[int] = (CELL,)  # pixels, even


class Tree(NamedTuple):
    """What becomes of every node of a shape, the error that it leaves, and its tokens."""

    fates: Mapping[Shape, NDArray[np.intp]]
    error: float
    tokens: int


def shapes(least: int, most: int) -> frozenset[Shape]:
    """Tokens whose stride across is 2**least to 2**most times that down."""
    sides = range(_TOP + 1)
    return frozenset((across, down) for across, down in product(sides, sides) if least <= across - down <= most)


FAMILIES: Final[Mapping[str, Family]] = {
    "squares": Family(shapes(0, 0)),
    "wide": Family(shapes(0, 2)),
    "high": Family(shapes(-2, 0)),
    "either": Family(shapes(-2, 2)),
    "cells of 16 to 28 pixels": Family(shapes(0, 0), range(CELL, 2 * CELL, 4)),
}


def between() -> dict[str, Method]:
    """Every family with either memory, by name."""
    return {
        f"tree, {name}, {memory}": partial(trees, family, memory == "stream")
        for name, family in FAMILIES.items()
        for memory in ("frame", "stream")
    }


def trees(family: Family, stream: bool, footage: Footage, budget: int) -> Iterator[Sent]:
    """The reader's picture after each frame. ``stream``: it keeps what it holds where no token is sent."""
    known = ReaderPicture(footage.shapes).planes
    whole = of_mask((), np.ones(footage.grid, np.bool_)).tokens
    for index, picture in enumerate(footage.pictures):
        kept = known if stream and index else None
        found = [_lattice(picture, unit).best(family.shapes, budget, kept) for unit in family.units]
        known, tree = min(found, key=lambda each: each[1].error)
        yield Sent(tuple(known), whole, tree.tokens / len(whole))


class _Lattice:
    """One frame over cells of ``unit`` pixels: how it is shown by tokens of each shape, and the error of that."""

    def __init__(self, planes: Sequence[Plane], unit: int, shapes: frozenset[Shape]) -> None:
        self._planes, self._unit = planes, unit
        self._shown = {shape: [self._enlarged(plane, shape) for plane in planes] for shape in shapes}
        self._errors = {shape: _over(self._in_cells(shown), *_cells(shape)) for shape, shown in self._shown.items()}
        nothing = [np.zeros(plane.shape, np.uint8) for plane in planes]
        inside = self._in_cells([plane + np.uint8(1) for plane in nothing], nothing)
        self._inside = {shape: _over(inside, *_cells(shape)) > 0 for shape in shapes}

    def best(self, shapes: frozenset[Shape], budget: int, kept: Sequence[Plane] | None) -> tuple[list[Plane], Tree]:
        """The planes and the tree of least error with at most ``budget`` tokens; more only if the coarsest are."""
        if kept is None:
            held = {shape: np.where(self._inside[shape], np.inf, 0.0) for shape in shapes}
        else:
            wrong = self._in_cells(kept)
            held = {shape: _over(wrong, *_cells(shape)) for shape in shapes}
        low, high = 0, len(_PRICES) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._tree(_PRICES[middle], held).tokens <= budget else (middle + 1, high)
        tree = self._tree(_PRICES[low], held)
        return self._painted(tree, kept), tree

    def _tree(self, price: float, held: Mapping[Shape, Nodes]) -> Tree:
        """From the finest nodes up, the cheapest of keeping what is ``held``, showing, halving and quartering each."""
        fates: dict[Shape, NDArray[np.intp]] = {}
        costs: dict[Shape, Nodes] = {}
        counts: dict[Shape, Nodes] = {}
        for shape in sorted(held, key=sum):
            fate = np.full(held[shape].shape, _NONE)
            least, needed = held[shape], np.zeros(fate.shape)
            ways = [(_LEAF, self._errors[shape] + price, np.ones(fate.shape))]
            for way, below, rows, columns in _splits(shape):
                if below in costs:
                    ways.append((way, _over(costs[below], rows, columns), _over(counts[below], rows, columns)))
            for way, cost, tokens in ways:
                better = cost < least
                fate[better], needed[better] = way, tokens[better]
                least = np.minimum(least, cost)
            fates[shape], costs[shape], counts[shape] = fate, least, needed
        sent = counts[_TOP, _TOP].sum()
        return Tree(fates, float(costs[_TOP, _TOP].sum() - price * sent), round(sent))

    def _painted(self, tree: Tree, kept: Sequence[Plane] | None) -> list[Plane]:
        planes = [plane.copy() for plane in (kept or self._planes)]
        reached = {shape: np.zeros(fate.shape, np.bool_) for shape, fate in tree.fates.items()}
        reached[_TOP, _TOP][:] = True
        for shape in sorted(reached, key=sum, reverse=True):
            fate = np.where(reached[shape], tree.fates[shape], _NONE)
            for way, below, rows, columns in _splits(shape):
                if below in reached:
                    reached[below] |= (fate == way).repeat(rows, axis=0).repeat(columns, axis=1)
            for plane, shown in zip(planes, self._shown[shape], strict=True):
                rows, columns = self._node(plane, shape)
                where = (fate == _LEAF).repeat(rows, axis=0).repeat(columns, axis=1)
                np.copyto(plane, shown, where=where[: plane.shape[0], : plane.shape[1]])
        return planes

    def _in_cells(self, shown: Sequence[Plane], true: Sequence[Plane] | None = None) -> Nodes:
        """The squared error in each cell; a sample of halved chroma counts as much as one of luma."""
        total: Nodes | float = 0.0
        for plane, other in zip(shown, true or self._planes, strict=True):
            apart = np.square(plane.astype(np.float32) - other)
            apart = np.pad(apart, [(0, beyond) for beyond in self._beyond(plane)])
            total = total + _over(apart, *self._node(plane, (0, 0)))
        return np.asarray(total, np.float64)

    def _enlarged(self, plane: Plane, shape: Shape) -> Plane:
        """Box means of 16 x 16 samples per token, no finer than pixels, enlarged bilinearly as a whole, then cut."""
        padded = np.pad(plane, [(0, beyond) for beyond in self._beyond(plane)], mode="edge").astype(np.float32)
        rows, columns = (
            min(side, side * CELL // reach) for side, reach in zip(padded.shape, self._node(plane, shape), strict=True)
        )
        if (rows, columns) == padded.shape:
            return plane
        small = cv2.resize(padded, (columns, rows), interpolation=cv2.INTER_AREA)
        large = cv2.resize(small, padded.shape[::-1], interpolation=cv2.INTER_LINEAR)
        return np.rint(large[: plane.shape[0], : plane.shape[1]].clip(0, 255)).astype(np.uint8)

    def _node(self, plane: Plane, shape: Shape) -> tuple[int, int]:
        """Rows and columns of samples of ``plane`` in a node."""
        unit = self._unit >> (plane.shape != self._planes[0].shape)
        return unit << shape[1], unit << shape[0]

    def _beyond(self, plane: Plane) -> tuple[int, int]:
        """Rows and columns that are missing to whole nodes of the coarsest shape, of the luma."""
        rows, columns = self._node(plane, (_TOP, _TOP))
        luma_rows, luma_columns = self._planes[0].shape
        side = self._unit << _TOP
        return -(-luma_rows // side) * rows - plane.shape[0], -(-luma_columns // side) * columns - plane.shape[1]


@lru_cache(maxsize=128)
def _lattice(picture: Picture, unit: int) -> _Lattice:
    """Held for the methods that come after: of cells of 16 pixels in all shapes, of others in squares."""
    return _Lattice(picture.planes, unit, shapes(-2, 2) if unit == CELL else shapes(0, 0))


def _cells(shape: Shape) -> tuple[int, int]:
    """Rows and columns of cells in a node."""
    return 1 << shape[1], 1 << shape[0]


def _splits(shape: Shape) -> Iterator[tuple[int, Shape, int, int]]:
    """How a node may be divided: its fate, the shape of its parts, and their rows and columns."""
    across, down = shape
    yield from ((_ACROSS, (across - 1, down), 1, 2), (_DOWN, (across, down - 1), 2, 1))
    yield _QUARTERS, (across - 1, down - 1), 2, 2


def _over(values: NDArray[np.floating], rows: int, columns: int) -> Nodes:
    """Sums over blocks of so many rows and columns."""
    high, wide = values.shape
    return values.reshape(high // rows, rows, wide // columns, columns).sum(axis=(1, 3), dtype=np.float64)
