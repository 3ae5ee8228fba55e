"""Changed tiles and keyframes: launch of change.cu."""

from __future__ import annotations

import math
from pathlib import Path

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.noise import MOST
from foveate.pipeline.settings import ChangeSettings
from foveate.pipeline.spec.change import BLOCK, HISTOGRAM_BINS, HISTOGRAM_SAMPLES, NOISE_LEVELS

SCRATCH = 2 + HISTOGRAM_BINS + NOISE_LEVELS  # int32, zero before the first launch: tickets, changed tiles, histograms
_BLOCK = BLOCK * BLOCK  # pixels over which a difference is averaged


class Change:
    """Compares a frame with what the texture holds."""

    def __init__(
        self,
        device: Device,
        state: PixelState,
        frame: DeviceArray,
        before: DeviceArray,
        scratch: DeviceArray,
        touched: DeviceArray,
        settings: ChangeSettings,
    ) -> None:
        """``frame`` is the FrameInput on the device; ``before`` uint8[tiles, 64], ``scratch`` int32[SCRATCH].

        ``touched`` is as for LocalChannels.
        """
        geometry = state.geometry
        rows, columns = geometry.tiles
        self._tiles = rows * columns
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("change")
        samples = _BLOCK // 4 if state.subsampled else _BLOCK
        self._parameters = program.parameters(
            "Change",
            input=frame,
            state=state.frame,
            held=[plane.levels[0] for plane in state.planes],
            changed=state.changed,
            written=state.written,
            dirty=state.dirty,
            motion=state.channel("motion"),
            before=before,
            scratch=scratch,
            touched_count=touched.pointer + self._tiles * touched.dtype.itemsize,
            cut_distance=settings.cut_histogram,
            cut_tiles=math.ceil(settings.cut_share * self._tiles),
            interval=settings.keyframe_interval,
            offset=settings.keyframe_offset,
            threshold=settings.threshold,
            noise=settings.noise,
            most=MOST,
            samples=samples,
            width=geometry.width,
            height=geometry.height,
            tile_rows=rows,
            tile_columns=columns,
            halved=state.subsampled,
            step=max(1, int(math.sqrt(geometry.width * geometry.height / HISTOGRAM_SAMPLES))),
        )

    def enqueue(self, stream: Stream) -> None:
        """Fill ``changed``, ``written``, ``dirty`` and ``frame`` of the state, and clear motion."""
        self._kernel.launch(stream, self._tiles, self._parameters)
