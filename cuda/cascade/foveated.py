"""Foveated allocation: launches of foveated.cu."""

from pathlib import Path
from typing import Final

import numpy as np

from foveate.cuda.cascade.allocation import Allocation
from foveate.cuda.cascade.layout import grid_of, units_of, upper_size
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.structs import layouts
from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.spec.foveated import HALVINGS

_SOURCE: Final = Path(__file__).with_suffix(".cu")
_FIXATION: Final = layouts(_SOURCE)["Fixation"]
_TREES: Final = 2**HALVINGS + 1


class Foveated:
    """Spends the budget; the CPU's is pipeline.cascade.foveated."""

    def __init__(self, given: Allocation) -> None:
        """Raises EngineError where the card is full."""
        memory, pixels, arrays = given.memory, given.pixels, given.arrays
        settings, stream = given.settings, given.stream
        allocation, geometry = settings.allocation, pixels.geometry
        each = allocation.merge**2
        grid = grid_of(geometry, allocation.merge)
        units = units_of(grid)
        upper = upper_size(int(grid["root_rows"]), int(grid["root_columns"]), geometry.top(1, allocation.merge))
        splits = sum(units >> 2 * level for level in range(1, TOP_LEVEL + 1)) + upper
        nodes = units + splits
        program = Program(_SOURCE, given.device.architecture)
        self._parameters = program.parameters(
            "Foveated",
            conclusion=given.conclusion,
            tokens=arrays.tokens,
            has_gaze=arrays.has_gaze,
            gaze=arrays.gaze_point,
            participation=None,
            kept=arrays.kept,
            leaf1=arrays.leaf1,
            leaf2=arrays.leaf2,
            leaf3=arrays.leaf3,
            leaf4=arrays.leaf4,
            upper=arrays.upper.leaves,
            fixation=memory.array("fixation point", (), _FIXATION, stream),
            rank=memory.array("ranks of nodes", (splits,), np.int32, stream),
            needed=memory.array("sorted nodes", (splits,), np.float64, stream),
            grown=memory.array("units of splits", (splits,), np.uint8, stream),
            lost=memory.array("errors of nodes", (nodes,), np.float32, stream),
            keys=memory.array("gains of nodes", (nodes,), np.uint32, stream),
            alive=memory.array("chosen nodes", (_TREES, nodes), np.uint8, stream),
            gained=memory.array("gains of trees", (_TREES,), np.float64, stream),
            grid=grid,
            width=geometry.width,
            height=geometry.height,
            nodes=nodes,
            budget=settings.budget // each,
            stream_memory=allocation.memory == "stream",
            enough=allocation.min_gain * each,
            m0=np.inf if allocation.m0 is None else allocation.m0,
            e0=allocation.e0,
            half_diagonal=np.hypot(geometry.width, geometry.height) / 2,
        )
        self._prepare, self._write = (program.kernel(name, "MOST_THREADS") for name in ("prepare", "foveated"))
        self._sort, self._grow = program.kernel("sort_nodes"), program.kernel("grow_trees", "MOST_THREADS")
        self._sorting_blocks = -(-splits // self._sort.threads)
        self._trees = _TREES if allocation.memory == "stream" else 1

    def set_top(self, top: int) -> None:
        """Let ``top`` be the LOD of the coarsest tokens."""
        self._parameters["grid"]["top"] = top

    def set_participation(self, participation: DeviceArray | None) -> None:
        """Look where ``participation``, float32[grid], is greatest, from now on."""
        self._parameters["participation"] = participation.pointer if participation else 0

    def enqueue(self, stream: Stream) -> None:
        """From gaze and costs to tokens."""
        self._prepare.launch(stream, 1, self._parameters)
        self._sort.launch(stream, self._sorting_blocks, self._parameters)
        self._grow.launch(stream, self._trees, self._parameters)
        self._write.launch(stream, 1, self._parameters)
