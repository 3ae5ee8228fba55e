"""Writing the dirty tiles and rebuilding their levels: launch of write.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.state import PixelState, PlaneLevels
from foveate.pipeline.cpu.stack import gains_of

_THREADS = 256
_BLOCKS_PER_PROCESSOR = 8  # more would only take turns
PLANE = np.dtype([("base", np.uint64), ("levels", np.uint64, (4,))], align=True)
"""What kernels know of a plane: see plane_pointers."""


class Write:
    """Writes what Change found."""

    def __init__(
        self, device: Device, state: PixelState, frame: DeviceArray, analysis_level: int, moved: DeviceArray
    ) -> None:
        """``frame`` is the FRAME_INPUT on the device; ``moved`` float32 at the analysis level, where motion is left."""
        geometry = state.geometry
        rows, columns = geometry.tiles
        self._blocks = min(rows * columns, _BLOCKS_PER_PROCESSOR * device.processors)
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("write_tiles")
        self._parameters = struct(
            input=(np.uint64, frame.pointer),
            state=(np.uint64, state.frame.pointer),
            dirty=(np.uint64, state.dirty.pointer),
            changed=(np.uint64, state.changed.pointer),
            planes=((PLANE, (3,)), np.array([plane_pointers(plane) for plane in state.planes], PLANE)),
            motion=(np.uint64, state.channel("motion").pointer),
            moved=(np.uint64, moved.pointer),
            inverse_span=(np.float32, 1.0 / gains_of(state.colour).span),
            width=(np.int32, geometry.width),
            height=(np.int32, geometry.height),
            tile_rows=(np.int32, rows),
            tile_columns=(np.int32, columns),
            halved=(np.int32, state.subsampled),
            analysis_level=(np.int32, analysis_level),
        )

    def enqueue(self, stream: Stream) -> None:
        """Write the tiles of ``dirty`` into planes, levels and motion."""
        self._kernel.launch(stream, self._blocks, _THREADS, self._parameters)


def plane_pointers(plane: PlaneLevels) -> tuple[int, list[int]]:
    """Addresses of a plane's base and of its levels 1 .. 4; 0 up to its base."""
    coarse = [array.pointer for array in plane.levels[1:]]
    return plane.levels[0].pointer, [0] * (4 - len(coarse)) + coarse
