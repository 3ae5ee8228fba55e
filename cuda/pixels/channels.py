"""The local channels on the Grid: launch of channels.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foveate.cuda.device import Device, Stream
from foveate.cuda.pixels.write import plane_pointers
from foveate.cuda.program import Program, struct
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.stack import gains_of

_THREADS = 256
_PLANE = np.dtype([("base", np.uint64), ("levels", np.uint64, (4,))], align=True)
_COMPUTED = ("edges", "edges_inverted", "highpass", "lowpass", "saliency")


class LocalChannels:
    """Recomputes the channels around written tiles."""

    def __init__(self, device: Device, state: PixelState, analysis_level: int) -> None:
        rows, columns = state.geometry.tiles
        self._tiles = rows * columns
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("local_channels")
        gains = gains_of(state.colour)
        self._parameters = struct(
            state=(np.uint64, state.frame.pointer),
            written=(np.uint64, state.written.pointer),
            planes=((_PLANE, (3,)), np.array([plane_pointers(plane) for plane in state.planes], _PLANE)),
            **{name: (np.uint64, state.channel(name).pointer) for name in _COMPUTED},
            black=(np.float32, gains.black),
            span=(np.float32, gains.span),
            luma_gain=(np.float32, gains.luma),
            chroma_gain=(np.float32, gains.chroma),
            tile_rows=(np.int32, rows),
            tile_columns=(np.int32, columns),
            level=(np.int32, analysis_level),
        )

    def enqueue(self, stream: Stream) -> None:
        """Bring edges, edges_inverted, highpass, lowpass and saliency up to date."""
        self._kernel.launch(stream, self._tiles, _THREADS, self._parameters)
