"""Carrying the maps along the flow, scoring the cells, weighting their errors: launch of carry.cu."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foveate.cuda.cascade.arrays import CARRY_THREADS, Arrays, ReaderArrays
from foveate.cuda.cascade.layout import GRID, blocks_of, grid_of
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.state import PixelState
from foveate.pipeline.geometry import CELL, TOP_LEVEL
from foveate.pipeline.settings import Settings

_SUMMING = 1024
_NEVER, _ALWAYS, _WITH_GAZE = range(3)


class Carry:
    """Brings maps, scores and costs up to this frame."""

    def __init__(
        self,
        device: Device,
        pixels: PixelState,
        arrays: Arrays,
        reader: ReaderArrays | None,
        settings: Settings,
        given: bool = False,
    ) -> None:
        """``given``: ``arrays.flow`` holds the flow of all cells, not only of the changed ones."""
        geometry, cache = pixels.geometry, settings.cache
        luma, three = pixels.planes[0], (np.uint64, (3,))
        grid = grid_of(geometry, settings.allocation.merge)
        self._blocks = blocks_of(grid, CARRY_THREADS)
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel, self._carry_upper, self._sum_upper = map(program.kernel, ("carry", "carry_upper", "sum_upper"))
        self._parameters = struct(
            frame=(np.uint64, pixels.frame.pointer),
            choice=(np.uint64, arrays.choice.pointer),
            changed=(np.uint64, pixels.changed.pointer),
            fine=(np.uint64, luma.level(cache.flow_level).pointer),
            coarse=(np.uint64, luma.level(TOP_LEVEL).pointer),
            fine_before=(np.uint64, arrays.fine_before.pointer),
            coarse_before=(np.uint64, arrays.coarse_before.pointer),
            flow=(np.uint64, arrays.flow.pointer),
            maps=(np.uint64, arrays.maps.pointer),
            channels=(np.uint64, pixels.channels.pointer),
            eccentricity=(np.uint64, arrays.eccentricity.pointer),
            bump=(np.uint64, arrays.bump.pointer),
            paid=(np.uint64, arrays.paid.pointer),
            gazing=(np.uint64, arrays.gazing.pointer),
            gaze=(np.uint64, arrays.gaze.pointer),
            attention_before=(np.uint64, arrays.prev_attention.pointer),
            age=(np.uint64, arrays.age.pointer),
            pending=(np.uint64, arrays.pending.pointer),
            scores=(np.uint64, arrays.scores.pointer),
            errors=(np.uint64, pixels.errors.pointer),
            reader_error=(np.uint64, reader.error.pointer if reader else 0),
            seen=(np.uint64, reader.seen.pointer if reader else 0),
            left=(np.uint64, reader.left.pointer if reader else 0),
            marked=(np.uint64, reader.marked.pointer if reader else 0),
            participation=(np.uint64, 0),
            kept=(np.uint64, arrays.kept.pointer),
            leaf1=(np.uint64, arrays.leaf1.pointer),
            leaf2=(np.uint64, arrays.leaf2.pointer),
            leaf3=(np.uint64, arrays.leaf3.pointer),
            leaf4=(np.uint64, arrays.leaf4.pointer),
            cells=(three, [plane.pointer for plane in pixels.colours]),
            samples=(three, [plane.pointer for plane in arrays.upper.samples]),
            shares=(np.uint64, arrays.upper.shares.pointer),
            sums=(np.uint64, arrays.upper.sums.pointer),
            upper=(np.uint64, arrays.upper.leaves.pointer),
            grid=(GRID, grid),
            given=(np.int32, given),
            side=(np.int32, CELL >> cache.flow_level),
            caches=(np.int32, cache.enabled),
            scored=(np.int32, _scored(settings)),
            max_age=(np.int32, min(cache.max_age, np.iinfo(np.int32).max)),
            turned=(np.int32, 0),
            confidence=(np.float32, cache.confidence),
            blend=(np.float32, cache.blend),
            floor=(np.float32, settings.score.floor),
        )

    def ask(self, participation: DeviceArray | None, turned: bool) -> None:
        """From now on score with ``participation``, float32[grid]; ``turned``: what is asked is new in this frame."""
        self._parameters["participation"] = participation.pointer if participation else 0
        self._parameters["turned"] = turned

    def enqueue(self, stream: Stream) -> None:
        """Maps, scores, ages and costs of this frame."""
        self._kernel.launch(stream, self._blocks, CARRY_THREADS, self._parameters)

    def reach(self, top: int) -> None:
        """From now on ``enqueue_upper`` goes up to ``top``."""
        self._parameters["grid"]["top"] = top

    def enqueue_upper(self, stream: Stream) -> None:
        """Costs of the levels above TOP_LEVEL, behind the rest and their samples."""
        self._carry_upper.launch(stream, self._blocks, CARRY_THREADS, self._parameters)
        self._sum_upper.launch(stream, 1, _SUMMING, self._parameters)


def _scored(settings: Settings) -> int:
    """When the score makes the weight: ``scored`` of carry.cu."""
    score, strategy = settings.score, settings.allocation.strategy
    return _ALWAYS if score.always(strategy) else _WITH_GAZE if score.weighs(strategy, gazing=True) else _NEVER
