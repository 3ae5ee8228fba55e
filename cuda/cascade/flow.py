"""Where the content of the changed cells was one frame earlier: launch of flow.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foveate.cuda.cascade.arrays import Arrays
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.state import PixelState
from foveate.pipeline.geometry import CELL, TOP_LEVEL
from foveate.pipeline.settings import CacheSettings

_THREADS = 128  # a warp for each cell of a tile
_BLOCKS_PER_PROCESSOR = 16  # more would only take turns


class FlowSearch:
    """Writes ``arrays.flow`` of the cells that changed; the CPU's is pipeline.cpu.flow."""

    def __init__(self, device: Device, pixels: PixelState, arrays: Arrays, settings: CacheSettings) -> None:
        rows, columns = pixels.geometry.grid
        luma = pixels.planes[0]
        tile_rows, tile_columns = pixels.geometry.tiles
        self._blocks = min(tile_rows * tile_columns, _BLOCKS_PER_PROCESSOR * device.processors)
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("flow")
        self._parameters = struct(
            frame=(np.uint64, pixels.frame.pointer),
            dirty=(np.uint64, pixels.dirty.pointer),
            fine=(np.uint64, luma.level(settings.flow_level).pointer),
            coarse=(np.uint64, luma.level(TOP_LEVEL).pointer),
            fine_before=(np.uint64, arrays.fine_before.pointer),
            coarse_before=(np.uint64, arrays.coarse_before.pointer),
            flow=(np.uint64, arrays.flow.pointer),
            rows=(np.int32, rows),
            columns=(np.int32, columns),
            side=(np.int32, CELL >> settings.flow_level),
        )

    def enqueue(self, stream: Stream) -> None:
        """Between the picture that Carry kept and this one."""
        self._kernel.launch(stream, self._blocks, _THREADS, self._parameters)
