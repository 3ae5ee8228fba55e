"""Which tiles changed, and what kind of frame it is: checks and launch of change.cu."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.noise import MOST
from foveate.pipeline.settings import ChangeSettings
from foveate.pipeline.spec.change import BLOCK, HISTOGRAM_BINS, NOISE_LEVELS

SCRATCH = 2 + HISTOGRAM_BINS + NOISE_LEVELS  # int32, zero before the first launch: tickets, changed tiles, histograms
_THREADS = 128
_BLOCK = BLOCK * BLOCK  # pixels over which a difference is averaged
_HISTOGRAM_SAMPLES = 65_536


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
        """``frame`` is the FRAME_INPUT on the device; ``before`` uint8[tiles, 64], ``scratch`` int32[SCRATCH].

        ``touched`` is as for LocalChannels.
        """
        geometry = state.geometry
        rows, columns = geometry.tiles
        self._tiles = rows * columns
        self._kernel = Program(Path(__file__).with_suffix(".cu"), device.architecture).kernel("change")
        samples = _BLOCK // 4 if state.subsampled else _BLOCK
        self._parameters = struct(
            input=(np.uint64, frame.pointer),
            state=(np.uint64, state.frame.pointer),
            held=(("u8", (3,)), [plane.levels[0].pointer for plane in state.planes]),
            changed=(np.uint64, state.changed.pointer),
            written=(np.uint64, state.written.pointer),
            dirty=(np.uint64, state.dirty.pointer),
            motion=(np.uint64, state.channel("motion").pointer),
            before=(np.uint64, before.pointer),
            scratch=(np.uint64, scratch.pointer),
            touched_count=(np.uint64, touched.pointer + self._tiles * touched.dtype.itemsize),
            cut_distance=(np.float64, settings.cut_histogram),
            cut_tiles=(np.int32, math.ceil(settings.cut_share * self._tiles)),
            interval=(np.int32, settings.keyframe_interval),
            threshold=(np.float64, settings.threshold),
            noise=(np.float64, settings.noise),
            most=(np.float64, MOST),
            samples=(np.int32, samples),
            width=(np.int32, geometry.width),
            height=(np.int32, geometry.height),
            tile_rows=(np.int32, rows),
            tile_columns=(np.int32, columns),
            halved=(np.int32, state.subsampled),
            step=(np.int32, max(1, int(math.sqrt(geometry.width * geometry.height / _HISTOGRAM_SAMPLES)))),
        )

    def enqueue(self, stream: Stream) -> None:
        """Fill ``changed``, ``written``, ``dirty`` and ``frame`` of the state, and clear motion."""
        self._kernel.launch(stream, self._tiles, _THREADS, self._parameters)
