"""Distance to the nearest edge cell: launch of edge_distance.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.pyramid import EDGE_CELL

_SIDE = 16


class EdgeDistance:
    """Brings the channel edge_distance up to date; the CPU's is pipeline.native.distance.edge_distance."""

    def __init__(self, device: Device, state: PixelState) -> None:
        rows, columns = state.geometry.grid
        self._grid = -(-columns // _SIDE), -(-rows // _SIDE)
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("edge_distance")
        self._parameters = struct(
            state=(np.uint64, state.frame.pointer),
            edges=(np.uint64, state.channel("edges").pointer),
            edges_inverted=(np.uint64, state.channel("edges_inverted").pointer),
            distance=(np.uint64, state.channel("edge_distance").pointer),
            edge=(np.float32, EDGE_CELL),
            rows=(np.int32, rows),
            columns=(np.int32, columns),
        )

    def enqueue(self, stream: Stream) -> None:
        """From edges and edges_inverted, where anything was written."""
        self._kernel.launch(stream, self._grid, _SIDE * _SIDE, self._parameters)
