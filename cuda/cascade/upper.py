"""The levels above TOP_LEVEL: samples and weighted errors. Launches of upper.cu, and of carry.cu's kernels for them.

Nothing is launched where the budget is large enough for tokens of TOP_LEVEL.
"""

from pathlib import Path

from foveate.cuda.cascade.arrays import UpperArrays
from foveate.cuda.cascade.carry import Carry
from foveate.cuda.cascade.layout import grid_of
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.geometry import TOP_LEVEL

_PLANES = 3  # a block each


class UpperLevels:
    """Recomputed for each frame, after Carry; the CPU's are pipeline.cpu.upper."""

    def __init__(self, device: Device, pixels: PixelState, upper: UpperArrays, carry: Carry, merge: int) -> None:
        self._carry = carry
        self._top = TOP_LEVEL
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("upper")
        self._parameters = program.parameters(
            "Upper",
            frame=pixels.frame,
            cells=pixels.colours,
            samples=upper.samples,
            grid=grid_of(pixels.geometry, merge),
        )

    def set_top(self, top: int) -> None:
        """Go up to ``top``, the LOD of the coarsest tokens."""
        self._top = top
        self._parameters["grid"]["top"] = top
        self._carry.set_top(top)

    def enqueue(self, stream: Stream) -> None:
        """Samples and costs of this frame, where there are levels above TOP_LEVEL."""
        if self._top > TOP_LEVEL:
            self._kernel.launch(stream, _PLANES, self._parameters)
            self._carry.enqueue_upper(stream)
