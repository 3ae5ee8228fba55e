"""Scores and ages of tokens, the reader's picture, and the tokens' pixels: launch of emit.cu."""

from pathlib import Path

import numpy as np

from foveate.cuda.cascade.arrays import Arrays, ReaderArrays
from foveate.cuda.cascade.layout import COLUMNS, grid_of, offsets
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState, PlaneLevels
from foveate.pipeline.colour import matrix_of
from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.settings import Settings

_SLICES = 8  # blocks that paint one token


class Emit:
    """Completes the tokens that a strategy has chosen."""

    def __init__(
        self,
        device: Device,
        pixels: PixelState,
        arrays: Arrays,
        reader: ReaderArrays | None,
        settings: Settings,
    ) -> None:
        matrix, offsets = matrix_of(pixels.colour)
        fixation = arrays.warped("fixation")
        self._blocks = 0, _SLICES if reader else 1
        self._record = arrays.record.pointer
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        cubic = "_cubic" if settings.allocation.interpolation == "bicubic" else ""
        self._kernels = {above: program.kernel(f"emit{'_upper' * above}{cubic}") for above in (False, True)}
        self._kernel = self._kernels[False]
        self._parameters = program.parameters(
            "Emit",
            frame=pixels.frame,
            cascade=arrays.cascade,
            header=arrays.header,
            columns=np.zeros((), COLUMNS),
            tokens=arrays.tokens,
            scores=arrays.scores,
            participation=None,
            age=arrays.age,
            pending=arrays.pending,
            fixation=[fixation.part(turn) for turn in range(2)],
            pixels=[plane.levels[0] for plane in pixels.planes],
            levels=[_coarse_levels(plane) for plane in pixels.planes],
            upper=arrays.upper.samples,
            reader=reader.planes if reader else None,
            seen=reader.seen if reader else None,
            peak=reader.peak if reader else None,
            stale=reader.stale if reader else None,
            patches=None,
            grid=grid_of(pixels.geometry, settings.allocation.merge),
            base=[plane.base for plane in pixels.planes],
            span_columns=pixels.geometry.span[1],
            matrix=matrix.ravel(),
            shift=-matrix @ offsets,
        )

    def resize(self, most: int, patches: DeviceArray | None) -> None:
        """Set the capacity to ``most`` tokens. ``patches`` is uint8[most, 16, 16, 3]; None if no pixels are wanted."""
        self._blocks = most, self._blocks[1]
        for name, offset in offsets(most).items():
            self._parameters["columns"][name] = self._record + offset
        self._parameters["patches"] = patches.pointer if patches else 0

    def set_top(self, top: int) -> None:
        """Let ``top`` be the LOD of the coarsest tokens."""
        self._kernel = self._kernels[top > TOP_LEVEL]

    def set_participation(self, participation: DeviceArray | None) -> None:
        """Give each token its mean of ``participation``, float32[grid], from now on."""
        self._parameters["participation"] = participation.pointer if participation else 0

    def enqueue(self, stream: Stream) -> None:
        """Scores, ages, painting and pixels of this frame's tokens."""
        self._kernel.launch(stream, self._blocks, self._parameters)


def _coarse_levels(plane: PlaneLevels) -> list[int]:
    """Addresses of levels 1 .. 4; 0 for those not coarser than the base."""
    return [0] * plane.base + [level.pointer for level in plane.levels[1:]]
