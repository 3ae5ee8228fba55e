"""What stirs, and what has come to where something else rested, on the device: launches of rest.cu."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.state import PixelState
from foveate.pipeline.attributes.rest import PANS, PATIENCE, STEP
from foveate.pipeline.native.rest import REST_LEVEL

_THREADS, _FORGET_THREADS = 64, 1024


class Rest:
    """Keeps ``maps``, float32[2, grid]: "stirs" and "moved" of pipeline.cpu.rest.RestStack."""

    def __init__(self, device: Device, memory: Memory, pixels: PixelState, stream: Stream) -> None:
        """Allocate on ``stream``. Raises EngineError where the card is full."""
        grid, samples = pixels.geometry.grid, pixels.geometry.level(REST_LEVEL)
        last, rest = (memory.array(name, (3, *samples), np.uint8, stream) for name in ("picture before", "at rest"))
        self.maps = memory.array("what stirs and moved", (2, *grid), np.float32, stream)
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._compare, self._forget = program.kernel("compare_rest"), program.kernel("forget_rest")
        self._tiles = pixels.written.nbytes
        self._parameters = struct(
            frame=(np.uint64, pixels.frame.pointer),
            written=(np.uint64, pixels.written.pointer),
            now=(("u8", (3,)), [plane.level(REST_LEVEL).pointer for plane in pixels.planes]),
            last=(("u8", (3,)), [last.part(plane).pointer for plane in range(3)]),
            rest=(("u8", (3,)), [rest.part(plane).pointer for plane in range(3)]),
            known=(np.uint64, memory.array("rest known", grid, np.uint8, stream).pointer),
            stirred=(np.uint64, memory.array("stirred last", grid, np.int32, stream).pointer),
            stirs=(np.uint64, self.maps.part(0).pointer),
            moved=(np.uint64, self.maps.part(1).pointer),
            rows=(np.int32, grid[0]),
            columns=(np.int32, grid[1]),
            index=(np.int32, 0),
            patience=(np.int32, PATIENCE),
            step=(np.int32, STEP),
            pans=(np.int32, ceil(PANS * grid[0] * grid[1])),
        )

    def enqueue(self, index: int, stream: Stream) -> None:
        """Compare the tiles that were written in frame ``index`` of the source."""
        self._parameters["index"] = index
        self._compare.launch(stream, self._tiles, _THREADS, self._parameters)
        self._forget.launch(stream, 1, _FORGET_THREADS, self._parameters)
