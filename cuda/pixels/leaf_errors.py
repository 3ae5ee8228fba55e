"""Error of each cell when shown at a level: launch of leaf_errors.cu."""

from pathlib import Path

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState


class LeafErrors:
    """Recomputes the errors of cells around written tiles; the CPU's is pipeline.native.leaf_errors."""

    def __init__(self, device: Device, state: PixelState) -> None:
        rows, columns = state.geometry.tiles
        self._tiles = rows * columns
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("leaf_errors")
        self._parameters = program.parameters(
            "LeafErrors",
            written=state.written,
            planes=[plane.pointers for plane in state.planes],
            errors=state.errors,
            halved=state.subsampled,
            tile_rows=rows,
            tile_columns=columns,
        )

    def enqueue(self, stream: Stream) -> None:
        """Update ``errors``, after Write."""
        self._kernel.launch(stream, self._tiles, self._parameters)
