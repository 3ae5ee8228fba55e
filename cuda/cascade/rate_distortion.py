"""The quadtree with the least weighted squared error: launches of rate_distortion.cu."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.allocation import Allocation
from foveate.cuda.cascade.layout import RATE, grid_of, units_of, upper_size
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.pipeline.cascade.rate import DEPTH, OCTAVES
from foveate.pipeline.cascade.rate_distortion import LEAST, PER_OCTAVE, first_price, prices
from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.settings import AllocationSettings

_BLOCKS = 88
_TRIED = 2 * _BLOCKS  # prices of a round: two rounds find one of 176 * 175, which are more than there are
_WORD = 4  # bytes, in which the tree is read


class RateDistortion:
    """Spends the budget; the CPU's is pipeline.native.pruning."""

    def __init__(self, given: Allocation) -> None:
        """Raises EngineError where the card is full."""
        memory, pixels, arrays = given.memory, given.pixels, given.arrays
        settings, stream = given.settings, given.stream
        allocation = settings.allocation
        grid = grid_of(pixels.geometry, allocation.merge)
        nodes, roots = 16 * int(grid["roots"]), int(grid["roots"])
        most = pixels.geometry.top(1, allocation.merge)
        upper_nodes = upper_size(int(grid["root_rows"]), int(grid["root_columns"]), most)
        tree_nodes = upper_nodes + sum(units_of(grid) >> 2 * level for level in range(TOP_LEVEL + 1))
        scratch = _TRIED, roots + upper_nodes
        listed = prices()
        on_device = memory.array("prices", listed.shape, np.float32, stream)
        on_device.upload(listed, stream)
        inside = memory.array("units inside", (nodes * 4,), np.uint8, stream)
        inside.upload(units_inside(grid), stream)
        start, last = first_price(allocation.min_gain), len(listed) - 1
        budget = settings.rate // allocation.merge**2
        program = Program(Path(__file__).with_suffix(".cu"), given.device.architecture)
        first = program.parameters(
            "Allocate",
            conclusion=given.conclusion,
            prices=on_device,
            kept=arrays.kept,
            leaf1=arrays.leaf1,
            leaf2=arrays.leaf2,
            leaf3=arrays.leaf3,
            leaf4=arrays.leaf4,
            units=inside,
            leaves=memory.array("upper leaves", (5 * roots,), np.float32, stream),
            upper=arrays.upper.leaves,
            state=memory.array("tree", (tree_nodes + _WORD,), np.uint8, stream),
            counts=memory.array("counts", (_TRIED,), np.int32, stream),
            upper_costs=memory.array("upper costs", scratch, np.float32, stream),
            upper_tokens=memory.array("upper tokens", scratch, np.int32, stream),
            tokens=arrays.tokens,
            rate=_rate(allocation, given.debt),
            grid=grid,
            budget=budget,
            stream_memory=allocation.memory == "stream",
            start=start,
            last=last,
            step=max(1, -(-(last - start) // (_TRIED - 1))),
            round=0,
            min_gain=max(allocation.min_gain, 2.0**LEAST),
        )
        second = first.copy()
        second["round"] = 1
        self._rounds = first, second
        names = {False: "allocate", True: "allocate_upper"}
        self._kernels = {above: program.kernel(name, "MOST_THREADS") for above, name in names.items()}
        self._kernel = self._kernels[False]
        self._threads = min(-(-nodes // 32) * 32, self._kernel.threads)

    def set_top(self, top: int) -> None:
        """Let ``top`` be the LOD of the coarsest tokens."""
        self._kernel = self._kernels[top > TOP_LEVEL]
        for parameters in self._rounds:
            parameters["grid"]["top"] = top

    def enqueue(self, stream: Stream) -> None:
        """From costs to tokens."""
        for parameters in self._rounds:
            self._kernel.launch(stream, _BLOCKS, parameters, self._threads)


def _rate(allocation: AllocationSettings, debt: DeviceArray | None) -> NDArray[np.void]:
    """The struct Rate; the device fills in what is a frame's own."""
    rate = np.zeros((), RATE)
    if debt is not None:
        rate["debt"], rate["burst"] = debt.pointer, allocation.burst
        rate["depth"], rate["steps"] = DEPTH, OCTAVES * PER_OCTAVE
    return rate


def units_inside(grid: NDArray[np.void]) -> NDArray[np.uint8]:
    """Units inside the picture under each node of level 1, in the order of cascade.cuh."""
    roots, across, depth = int(grid["roots"]), int(grid["root_columns"]), TOP_LEVEL - 1
    node = np.arange(roots << 2 * depth)
    root = node >> 2 * depth
    row, column = (root // across) << depth, (root % across) << depth
    for bit in range(depth):
        column += (node >> 2 * bit & 1) << bit
        row += (node >> 2 * bit + 1 & 1) << bit
    rows, columns = (
        np.clip(int(grid[name]) - 2 * place, 0, 2) for name, place in (("unit_rows", row), ("unit_columns", column))
    )
    return (rows * columns).astype(np.uint8)
