"""All layers of a texture at given points, or in patches around them: checks and launch of sample.cu."""

from pathlib import Path

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.textures import TextureArray


class Sampler:
    """Reads a texture with the hardware's trilinear filter, whose weights have 8 bits."""

    def __init__(self, device: Device, texture: TextureArray, gridded: int | None = None) -> None:
        """``gridded``: the first of the layers that are read from the last level, whatever the point's level."""
        self._texture = texture
        self._gridded = texture.layers if gridded is None else gridded
        self._program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = self._program.kernel("sample_layers")

    def enqueue(self, points: DeviceArray, values: DeviceArray, stream: Stream, side: int = 1) -> None:
        """``values`` float32[K, layers * side * side * components] at ``points``: x and y in [0, 1], and the level.

        ``side`` samples along a patch around each point, 2**level texels of level 0 apart. ``points`` are
        float32[K, 3], the same for all layers, or float32[layers, K, 3]. Raises ValueError for other shapes.
        """
        texture, count = self._texture, points.shape[-2]
        wide = texture.layers * side**2 * texture.components
        if points.shape not in ((count, 3), (texture.layers, count, 3)) or values.shape != (count, wide):
            raise ValueError(
                f"points must be [K, 3] or [{texture.layers}, K, 3] and values [K, {wide}], got {points.shape}, "
                f"{values.shape}"
            )
        parameters = self._program.parameters(
            "Sample",
            texture=texture.texture,
            points=points,
            values=values,
            count=count,
            layers=texture.layers,
            side=side,
            rows=texture.shape[0],
            columns=texture.shape[1],
            components=texture.components,
            apart=0 if len(points.shape) == 2 else count,
            gridded=self._gridded,
            last=texture.levels - 1,
        )
        self._kernel.launch(stream, -(-count * texture.layers * side**2 // self._kernel.threads), parameters)
