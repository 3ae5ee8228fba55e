"""Coarse-to-fine culling: launch of top_k.cu."""

from pathlib import Path

import numpy as np

from foveate.cuda.cascade.allocation import Allocation
from foveate.cuda.cascade.layout import grid_of, units_of
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.program import Program
from foveate.pipeline.cascade import top_k
from foveate.pipeline.cascade.strategies import strategy


class TopK:
    """Spends the budget; the CPU's is pipeline.cascade.top_k."""

    def __init__(self, given: Allocation) -> None:
        """Raises EngineError where the card is full."""
        memory, pixels, arrays = given.memory, given.pixels, given.arrays
        settings, stream = given.settings, given.stream
        chosen = strategy(settings.allocation)
        assert isinstance(chosen, top_k.TopK)
        each = settings.allocation.merge**2
        grid = grid_of(pixels.geometry, settings.allocation.merge)
        units = units_of(grid)
        program = Program(Path(__file__).with_suffix(".cu"), given.device.architecture)
        self._parameters = program.parameters(
            "TopK",
            conclusion=given.conclusion,
            tokens=arrays.tokens,
            channels=pixels.channels,
            scores=arrays.scores,
            errors=pixels.errors,
            kept=arrays.kept,
            keys=memory.array("keys", (units,), np.uint32, stream),
            alive=memory.array("alive", (units,), np.uint8, stream),
            grid=grid,
            stages=_padded([(stage.value, stage.keep // each) for stage in chosen.stages], program),
            count=len(chosen.stages),
            budget=settings.budget // each,
            stream_memory=settings.allocation.memory == "stream",
            enough=settings.allocation.min_gain * each,
            share=chosen.share or 0,
            nearly=top_k.NEARLY,
        )
        self._kernel = program.kernel("top_k", "MOST_THREADS")

    def set_top(self, top: int) -> None:
        """Nothing: all tokens have LOD 0."""

    def enqueue(self, stream: Stream) -> None:
        """From scores to tokens."""
        self._kernel.launch(stream, 1, self._parameters)


def _padded(stages: list[tuple[int, int]], program: Program) -> list[tuple[int, int]]:
    """As many as the struct has room for."""
    return stages + [(0, 0)] * (program.constants["MOST_STAGES"] - len(stages))
