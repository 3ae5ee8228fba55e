"""Errors of the reader's picture: launch of reader.cu."""

from pathlib import Path

from foveate.cuda.cascade.arrays import Arrays, ReaderArrays
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.noise import MOST, PER_SQUARE
from foveate.pipeline.settings import ChangeSettings


class Compare:
    """Updates ``reader.error`` and ``reader.residual``; the CPU's is pipeline.cpu.reader.Reader.compare."""

    def __init__(
        self, device: Device, pixels: PixelState, arrays: Arrays, reader: ReaderArrays, change: ChangeSettings
    ) -> None:
        rows, columns = pixels.geometry.tiles
        self._tiles = rows * columns
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("compare")
        self._parameters = program.parameters(
            "Compare",
            frame=pixels.frame,
            written=pixels.written,
            changed=pixels.changed,
            age=arrays.age,
            stale=reader.stale,
            seen=reader.seen,
            error=reader.error,
            residual=reader.residual,
            peak=reader.peak,
            pixels=[plane.levels[0] for plane in pixels.planes],
            reader=reader.planes,
            base=[plane.base for plane in pixels.planes],
            tile_rows=rows,
            tile_columns=columns,
            span_columns=pixels.geometry.span[1],
            levels=reader.residual.shape[0],
            noise=change.noise,
            most=MOST,
            per_square=PER_SQUARE,
        )

    def enqueue(self, stream: Stream) -> None:
        """Where anything was written or painted since the last frame."""
        self._kernel.launch(stream, self._tiles, self._parameters)
