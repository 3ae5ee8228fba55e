"""Optical flow of the changed cells: launch of flow.cu."""

from pathlib import Path

from foveate.cuda.cascade.arrays import Arrays
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.geometry import CELL, TOP_LEVEL
from foveate.pipeline.settings import CacheSettings

_BLOCKS_PER_PROCESSOR = 16  # more would not run at the same time


class FlowSearch:
    """Writes ``arrays.flow`` of the cells that changed; the CPU's is pipeline.cpu.flow."""

    def __init__(self, device: Device, pixels: PixelState, arrays: Arrays, settings: CacheSettings) -> None:
        rows, columns = pixels.geometry.grid
        luma = pixels.planes[0]
        tile_rows, tile_columns = pixels.geometry.tiles
        self._blocks = min(tile_rows * tile_columns, _BLOCKS_PER_PROCESSOR * device.processors)
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("flow")
        self._parameters = program.parameters(
            "Flow",
            frame=pixels.frame,
            dirty=pixels.dirty,
            fine=luma.level(settings.flow_level),
            coarse=luma.level(TOP_LEVEL),
            fine_before=arrays.fine_before,
            coarse_before=arrays.coarse_before,
            flow=arrays.flow,
            rows=rows,
            columns=columns,
            side=CELL >> settings.flow_level,
        )

    def enqueue(self, stream: Stream) -> None:
        """Search between the previous picture, which Carry stores, and this one."""
        self._kernel.launch(stream, self._blocks, self._parameters)
