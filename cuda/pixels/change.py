"""Changed tiles and keyframes: launch of change.cu."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.cuts import PLAIN_ENERGY, least_energy, least_likeness, least_likeness_displaced
from foveate.pipeline.cpu.noise import MOST
from foveate.pipeline.geometry import CELLS_PER_TILE, TILE, Geometry
from foveate.pipeline.settings import ChangeSettings
from foveate.pipeline.spec.change import BLOCK, NOISE_LEVELS

SCRATCH = 2 + NOISE_LEVELS  # int32, zero before the first launch: tickets, changed tiles, histogram of noise
_BLOCK = BLOCK * BLOCK  # pixels over which a difference is averaged


class CutArrays(NamedTuple):
    """What finding scene cuts needs on the device, zero before the first launch; see cuts.cuh."""

    state: DeviceArray  # int32[2]
    cells: DeviceArray  # uint32[tiles, 4]
    shown: DeviceArray  # uint32[tiles, 4]
    profiles: DeviceArray  # int32[2 (rows + columns)] of cells


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
        cuts: CutArrays,
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
            cuts=_cuts(cuts, geometry, settings),
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
        )

    def enqueue(self, stream: Stream) -> None:
        """Fill ``changed``, ``written``, ``dirty`` and ``frame`` of the state, and clear motion."""
        self._kernel.launch(stream, self._tiles, self._parameters)


def cut_arrays(memory: Memory, geometry: Geometry, stream: Stream) -> CutArrays:
    """Allocate on ``stream``. Raises EngineError where the card is full."""
    cells = sum(geometry.tiles) * CELLS_PER_TILE
    return CutArrays(
        memory.array("scene cuts", (2,), np.int32, stream),
        memory.array("structure", (*geometry.tiles, 4), np.uint32, stream),
        memory.array("structure shown last", (*geometry.tiles, 4), np.uint32, stream),
        memory.array("profiles", (2 * cells,), np.int32, stream),
    )


def _cuts(arrays: CutArrays, geometry: Geometry, settings: ChangeSettings) -> tuple[object, ...]:
    """The struct Cuts."""
    rows, columns = geometry.tiles
    whole = geometry.height // TILE, geometry.width // TILE
    energies = PLAIN_ENERGY, least_energy(whole[0] * whole[1])
    alike = least_likeness(settings), least_likeness_displaced(settings)
    share = math.ceil(settings.cut_share * rows * columns)
    return (*arrays, *energies, *alike, share, columns, *(tiles * CELLS_PER_TILE for tiles in whole))
