"""The quadtree with the least weighted squared error: launches of allocate.cu."""

from __future__ import annotations

from math import ceil, log2
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.arrays import Arrays
from foveate.cuda.cascade.layout import CONCLUSION, GRID, grid_of, units_of
from foveate.cuda.device import Device, Stream
from foveate.cuda.memory import Memory
from foveate.cuda.program import Program, struct
from foveate.cuda.state import PixelState
from foveate.pipeline.geometry import ROOT, TOP_LEVEL
from foveate.pipeline.settings import Settings

STEPS_PER_DOUBLING: Final = 512
LOWEST, HIGHEST = -5120, 25600  # prices on the lattice: 2**-10 to 2**50, more than the errors of any picture add up to
_BLOCKS = 176  # prices tried at once: _BLOCKS * (_BLOCKS - 1) > HIGHEST - LOWEST, so two rounds reach the whole lattice
_MOST_THREADS = 1024


def lattice() -> NDArray[np.float32]:
    """The prices: float32[HIGHEST - LOWEST + 1], ascending."""
    return np.asarray(2.0 ** (np.arange(LOWEST, HIGHEST + 1) / STEPS_PER_DOUBLING), np.float32)


def first_price(min_gain: float) -> int:
    """Index into the lattice of the lowest price not below ``min_gain``."""
    if min_gain <= 0:
        return 0
    return min(max(ceil(STEPS_PER_DOUBLING * log2(min_gain)), LOWEST), HIGHEST) - LOWEST


class RateDistortion:
    """Spends the budget; the CPU's is pipeline.cascade.rate_distortion."""

    def __init__(
        self,
        device: Device,
        memory: Memory,
        pixels: PixelState,
        arrays: Arrays,
        settings: Settings,
        conclusion: NDArray[np.void],
        stream: Stream,
    ) -> None:
        """Raises EngineError where the card is full."""
        allocation = settings.allocation
        grid = grid_of(pixels.geometry, allocation.merge)
        nodes, roots = 16 * int(grid["roots"]), int(grid["roots"])
        tree_nodes = sum(units_of(grid) >> 2 * level for level in range(TOP_LEVEL + 1))
        self._threads = min(-(-nodes // 32) * 32, _MOST_THREADS)
        prices = memory.array("prices", (HIGHEST - LOWEST + 1,), np.float32, stream)
        prices.upload(lattice(), stream)
        start, last = first_price(allocation.min_gain), HIGHEST - LOWEST
        budget = settings.budget // allocation.merge**2
        common = {
            "conclusion": (CONCLUSION, conclusion),
            "prices": (np.uint64, prices.pointer),
            "kept": (np.uint64, arrays.kept.pointer if may_skip(pixels, settings) else 0),
            "leaf1": (np.uint64, arrays.leaf1.pointer),
            "leaf2": (np.uint64, arrays.leaf2.pointer),
            "leaf3": (np.uint64, arrays.leaf3.pointer),
            "leaf4": (np.uint64, arrays.leaf4.pointer),
            "leaves": (np.uint64, memory.array("upper leaves", (5 * roots,), np.float32, stream).pointer),
            "state": (np.uint64, memory.array("tree", (tree_nodes,), np.uint8, stream).pointer),
            "counts": (np.uint64, memory.array("counts", (_BLOCKS,), np.int32, stream).pointer),
            "tokens": (np.uint64, arrays.tokens.pointer),
            "grid": (GRID, grid),
            "budget": (np.int32, budget),
            "start": (np.int32, start),
            "last": (np.int32, last),
            "step": (np.int32, max(1, -(-(last - start) // (_BLOCKS - 1)))),
        }
        min_gain = max(allocation.min_gain, 2.0 ** (LOWEST / STEPS_PER_DOUBLING))
        self._rounds = [
            struct(**common, round=(np.int32, number), min_gain=(np.float64, min_gain)) for number in range(2)
        ]
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("allocate")

    def enqueue(self, stream: Stream) -> None:
        """From costs to tokens."""
        for parameters in self._rounds:
            self._kernel.launch(stream, _BLOCKS, self._threads, parameters)


def may_skip(pixels: PixelState, settings: Settings) -> bool:
    """Whether units may go without a token: the reader remembers, or even one token per root is too many."""
    allocation = settings.allocation
    grid = grid_of(pixels.geometry, allocation.merge)
    inside = -(-int(grid["unit_rows"]) // ROOT) * -(-int(grid["unit_columns"]) // ROOT)
    return allocation.memory == "stream" or inside > settings.budget // allocation.merge**2
