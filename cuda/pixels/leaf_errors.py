"""How wrong each cell is when it is shown at a level: launch of leaf_errors.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.pixels.write import PLANE, plane_pointers
from foveate.cuda.state import PixelState

_THREADS = 256


class LeafErrors:
    """Recomputes the errors of cells around written tiles; the CPU's is pipeline.native.leaf_errors."""

    def __init__(self, device: Device, state: PixelState) -> None:
        rows, columns = state.geometry.tiles
        self._tiles = rows * columns
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("leaf_errors")
        self._parameters = struct(
            written=(np.uint64, state.written.pointer),
            planes=((PLANE, (3,)), np.array([plane_pointers(plane) for plane in state.planes], PLANE)),
            errors=(np.uint64, state.errors.pointer),
            halved=(np.int32, state.subsampled),
            tile_rows=(np.int32, rows),
            tile_columns=(np.int32, columns),
        )

    def enqueue(self, stream: Stream) -> None:
        """Bring ``errors`` up to date, behind Write."""
        self._kernel.launch(stream, self._tiles, _THREADS, self._parameters)
