"""Distance to the nearest edge cell: launch of edge_distance.cu."""

from pathlib import Path

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.pyramid import EDGE_CELL


class EdgeDistance:
    """Updates the channel edge_distance; the CPU's is pipeline.native.edge_distance."""

    def __init__(self, device: Device, state: PixelState) -> None:
        rows, columns = state.geometry.grid
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        side = program.constants["SIDE"]
        self._grid = -(-columns // side), -(-rows // side)
        self._kernel = program.kernel("edge_distance")
        self._parameters = program.parameters(
            "EdgeDistance",
            state=state.frame,
            edges=state.channel("edges"),
            edges_inverted=state.channel("edges_inverted"),
            distance=state.channel("edge_distance"),
            edge=EDGE_CELL,
            rows=rows,
            columns=columns,
        )

    def enqueue(self, stream: Stream) -> None:
        """From edges and edges_inverted, where anything was written."""
        self._kernel.launch(stream, self._grid, self._parameters)
