"""Coarse-to-fine culling: launch of three_stage.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.arrays import Arrays
from foveate.cuda.cascade.layout import grid_of, units_of
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.cascade.top_k import COARSE_KEEP, MIDDLE_KEEP
from foveate.pipeline.settings import Settings


class ThreeStage:
    """Spends the budget; the CPU's is pipeline.cascade.top_k."""

    def __init__(
        self,
        device: Device,
        memory: Memory,
        pixels: PixelState,
        arrays: Arrays,
        settings: Settings,
        conclusion: NDArray[np.void],
        debt: DeviceArray | None,
        stream: Stream,
    ) -> None:
        """``debt`` is None: the budget is fixed. Raises EngineError where the card is full."""
        each = settings.allocation.merge**2
        grid = grid_of(pixels.geometry, settings.allocation.merge)
        units = units_of(grid)
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._parameters = program.parameters(
            "ThreeStage",
            conclusion=conclusion,
            tokens=arrays.tokens,
            channels=pixels.channels,
            scores=arrays.scores,
            errors=pixels.errors,
            kept=arrays.kept,
            keys=memory.array("keys", (units,), np.uint32, stream),
            alive=memory.array("alive", (units,), np.uint8, stream),
            grid=grid,
            keep=[COARSE_KEEP // each, MIDDLE_KEEP // each],
            budget=settings.budget // each,
            stream_memory=settings.allocation.memory == "stream",
            enough=settings.allocation.min_gain * each,
        )
        self._kernel = program.kernel("three_stage", "MOST_THREADS")

    def set_top(self, top: int) -> None:
        """Nothing: all tokens have LOD 0."""

    def enqueue(self, stream: Stream) -> None:
        """From scores to tokens."""
        self._kernel.launch(stream, 1, self._parameters)
