"""The local channels on the Grid: launch of channels.cu, and the parameters that layers.cu takes as well."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.textures import MOST_LEVELS, TextureArray
from foveate.cuda.state import PixelState
from foveate.pipeline.colour import matrix_of
from foveate.pipeline.cpu.stack import gains_of


def channel_parameters(
    device: Device,
    state: PixelState,
    analysis_level: int,
    textures: tuple[TextureArray, TextureArray],
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
    program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
    return program.parameters(
        "Channels",
        rgb=rgb,
        stack=stack,
        state=state.frame,
        written=state.written,
        changed=state.changed,
        shown=shown,
        touched=touched,
        touched_count=touched.pointer + rows * columns * touched.dtype.itemsize,
        moved=moved,
        planes=[plane.pointers for plane in state.planes],
        edges=state.channel("edges"),
        edges_inverted=state.channel("edges_inverted"),
        highpass=state.channel("highpass"),
        lowpass=state.channel("lowpass"),
        saliency=state.channel("saliency"),
        black=gains.black,
        span=gains.span,
        luma_gain=gains.luma,
        chroma_gain=gains.chroma,
        matrix=matrix.ravel() / 255.0,
        offsets=offsets,
        width=state.geometry.width,
        height=state.geometry.height,
        halved=state.subsampled,
        tile_rows=rows,
        tile_columns=columns,
        level=analysis_level,
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
        """Update edges, edges_inverted, highpass, lowpass and saliency."""
        self._kernel.launch(stream, self._tiles, self._parameters)
