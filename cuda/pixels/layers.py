"""The RGB pyramid and the local channels in the channel stack: launch of layers.cu."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState

_BLOCKS_PER_PROCESSOR = 3  # as many as fit, by their registers


class Layers:
    """Updates the textures in the tiles that LocalChannels lists."""

    def __init__(self, device: Device, state: PixelState, parameters: NDArray[np.void]) -> None:
        """``parameters`` as ``channels.channel_parameters`` makes them."""
        rows, columns = state.geometry.tiles
        self._blocks = min(rows * columns, _BLOCKS_PER_PROCESSOR * device.processors)
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("write_layers")
        self._parameters = parameters

    def enqueue(self, stream: Stream) -> None:
        """After LocalChannels. The Cascade reads nothing of it, so that both may run at the same time."""
        self._kernel.launch(stream, self._blocks, self._parameters)
