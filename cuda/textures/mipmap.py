"""The levels above level 0, in whole or over boxes that changed: launches of mipmap.cu, one per level."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.textures import TextureArray
from foveate.cuda.textures.boxes import Box, one_level_up
from foveate.cuda.textures.write import grid_of


class Mipmap:
    """Rebuilds levels from the ones below them."""

    def __init__(self, device: Device, texture: TextureArray) -> None:
        self._texture = texture
        self._program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = self._program.kernel("reduce_boxes")
        self._steps = [self._step(level) for level in range(1, texture.levels)]

    def enqueue(self, boxes: Sequence[Box], layer: int, layers: int, stream: Stream) -> None:
        """Every level over what depends on ``boxes`` of level 0, in ``layers`` layers from ``layer`` on."""
        for fine, struct in enumerate(self._steps):
            boxes = [one_level_up(box, self._texture.level_shape(fine)) for box in boxes]
            struct["boxes"][: len(boxes)] = boxes
            struct["first_layer"], struct["layers"] = layer, layers
            self._kernel.launch(stream, grid_of(boxes, layers, self._kernel.threads), struct)

    def _step(self, level: int) -> NDArray[np.void]:
        """Parameters for ``level``, still without boxes and layers."""
        texture = self._texture
        (fine_rows, fine_columns), (rows, columns) = texture.level_shape(level - 1), texture.level_shape(level)
        return self._program.parameters(
            "Reduce",
            fine=texture.surfaces[level - 1],
            coarse=texture.surfaces[level],
            boxes=None,
            fine_rows=fine_rows,
            fine_columns=fine_columns,
            coarse_rows=rows,
            coarse_columns=columns,
            components=texture.components,
            first_layer=0,
            layers=0,
        )
