"""All channels at given points: checks and launch of sample.cu; the values are in layout.ORDER."""

from __future__ import annotations

from pathlib import Path

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.textures import Texture
from foveate.cuda.pixels.layout import LAYERS, ORDER, SAMPLED


class Sampler:
    """Reads the channel stack with the hardware's trilinear filter, whose weights have 8 bits."""

    def __init__(self, device: Device, stack: Texture) -> None:
        self._stack = stack
        self._program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = self._program.kernel("sample_stack")

    def enqueue(self, points: DeviceArray, values: DeviceArray, stream: Stream) -> None:
        """``values`` float32[K, 40] at ``points`` float32[K, 3]: x and y in [0, 1] of the padded picture, and level.

        Level 0 of the stack is the analysis level. Channels that exist on the Grid alone are read from it, whatever the
        level. Raises ValueError for other shapes.
        """
        count = points.shape[0]
        if points.shape != (count, 3) or values.shape != (count, len(ORDER)):
            raise ValueError(f"points must be [K, 3] and values [K, {len(ORDER)}], got {points.shape}, {values.shape}")
        parameters = self._program.parameters(
            "Sample",
            texture=self._stack.texture,
            points=points,
            values=values,
            count=count,
            layers=LAYERS,
            gridded=len(SAMPLED) // 4,
            last=self._stack.levels - 1,
        )
        self._kernel.launch(stream, -(-count * LAYERS // self._kernel.threads), parameters)
