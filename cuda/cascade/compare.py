"""How wrong the reader's picture is: launch of compare.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foveate.cuda.cascade.arrays import Arrays, ReaderArrays
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.noise import MOST, PER_SQUARE
from foveate.pipeline.settings import ChangeSettings

_THREADS = 256


class Compare:
    """Brings ``reader.error`` and ``reader.left`` up to date; the CPU's is pipeline.cpu.reader.Reader.compare."""

    def __init__(
        self, device: Device, pixels: PixelState, arrays: Arrays, reader: ReaderArrays, change: ChangeSettings
    ) -> None:
        rows, columns = pixels.geometry.tiles
        three = (np.uint64, (3,))
        self._tiles = rows * columns
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("compare")
        self._parameters = struct(
            frame=(np.uint64, pixels.frame.pointer),
            written=(np.uint64, pixels.written.pointer),
            changed=(np.uint64, pixels.changed.pointer),
            age=(np.uint64, arrays.age.pointer),
            stale=(np.uint64, reader.stale.pointer),
            seen=(np.uint64, reader.seen.pointer),
            error=(np.uint64, reader.error.pointer),
            left=(np.uint64, reader.left.pointer),
            marked=(np.uint64, reader.marked.pointer),
            pixels=(three, [plane.levels[0].pointer for plane in pixels.planes]),
            reader=(three, [plane.pointer for plane in reader.planes]),
            base=((np.int32, (3,)), [plane.base for plane in pixels.planes]),
            tile_rows=(np.int32, rows),
            tile_columns=(np.int32, columns),
            span_columns=(np.int32, pixels.geometry.span[1]),
            levels=(np.int32, reader.left.shape[0]),
            noise=(np.float64, change.noise),
            most=(np.float64, MOST),
            per_square=(np.float64, PER_SQUARE),
        )

    def enqueue(self, stream: Stream) -> None:
        """Where anything was written or painted since the last frame."""
        self._kernel.launch(stream, self._tiles, _THREADS, self._parameters)
