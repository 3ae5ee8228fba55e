"""The RGB pyramid and the local channels in the channel stack: launch of layers.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.device import Device, Stream
from foveate.cuda.program import Program
from foveate.cuda.state import PixelState

_THREADS = 256


class Layers:
    """Brings the textures up to date around written tiles, and where motion has ended."""

    def __init__(self, device: Device, state: PixelState, parameters: NDArray[np.void]) -> None:
        """``parameters`` as ``channels.channel_parameters`` makes them."""
        rows, columns = state.geometry.tiles
        self._tiles = rows * columns
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("write_layers")
        self._parameters = parameters

    def enqueue(self, stream: Stream) -> None:
        """Nothing else reads or writes what this does: it may run beside the Cascade."""
        self._kernel.launch(stream, self._tiles, _THREADS, self._parameters)
