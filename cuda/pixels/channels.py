"""The local channels on the Grid: launch of channels.cu, and the parameters that layers.cu takes as well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.driver.textures import MOST_LEVELS, Texture
from foveate.cuda.pixels.write import PLANE, plane_pointers
from foveate.cuda.state import PixelState
from foveate.pipeline.colour import matrix_of
from foveate.pipeline.cpu.stack import gains_of

_THREADS = 256
_COMPUTED = ("edges", "edges_inverted", "highpass", "lowpass", "saliency")


def channel_parameters(
    state: PixelState,
    analysis_level: int,
    textures: tuple[Texture, Texture],
    moved: DeviceArray,
    shown: DeviceArray,
    touched: DeviceArray,
) -> NDArray[np.void]:
    """The struct Channels of local.cuh. ``textures`` are the RGB pyramid and the channel stack.

    ``moved`` is float32 at the analysis level, ``shown`` uint8[tiles], zero before the first frame; ``touched``
    int32[tiles + 1], of which the last is the number of tiles listed.
    """
    rows, columns = state.geometry.tiles
    gains = gains_of(state.colour)
    matrix, offsets = matrix_of(state.colour)
    rgb, stack = (surfaces + [0] * (MOST_LEVELS - len(surfaces)) for surfaces in (t.surfaces for t in textures))
    return struct(
        rgb=(("u8", (MOST_LEVELS,)), rgb),
        stack=(("u8", (MOST_LEVELS,)), stack),
        state=(np.uint64, state.frame.pointer),
        written=(np.uint64, state.written.pointer),
        changed=(np.uint64, state.changed.pointer),
        shown=(np.uint64, shown.pointer),
        touched=(np.uint64, touched.pointer),
        touched_count=(np.uint64, touched.pointer + rows * columns * touched.dtype.itemsize),
        moved=(np.uint64, moved.pointer),
        planes=((PLANE, (3,)), np.array([plane_pointers(plane) for plane in state.planes], PLANE)),
        **{name: (np.uint64, state.channel(name).pointer) for name in _COMPUTED},
        black=(np.float32, gains.black),
        span=(np.float32, gains.span),
        luma_gain=(np.float32, gains.luma),
        chroma_gain=(np.float32, gains.chroma),
        matrix=(("f4", (9,)), matrix.ravel() / 255.0),
        offsets=(("f4", (3,)), offsets),
        width=(np.int32, state.geometry.width),
        height=(np.int32, state.geometry.height),
        halved=(np.int32, state.subsampled),
        tile_rows=(np.int32, rows),
        tile_columns=(np.int32, columns),
        level=(np.int32, analysis_level),
    )


class LocalChannels:
    """Recomputes the channels on the Grid around written tiles."""

    def __init__(self, device: Device, state: PixelState, parameters: NDArray[np.void]) -> None:
        """``parameters`` as ``channel_parameters`` makes them."""
        rows, columns = state.geometry.tiles
        self._tiles = rows * columns
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("local_channels")
        self._parameters = parameters

    def enqueue(self, stream: Stream) -> None:
        """Bring edges, edges_inverted, highpass, lowpass and saliency up to date."""
        self._kernel.launch(stream, self._tiles, _THREADS, self._parameters)
