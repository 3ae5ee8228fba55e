"""Temporal maps warped along the flow, scores, and weighted errors: launch of carry.cu."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.arrays import CARRY_THREADS, Arrays, ReaderArrays
from foveate.cuda.cascade.layout import blocks_of, grid_of
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.geometry import CELL, TOP_LEVEL
from foveate.pipeline.settings import Settings

_NEVER, _ALWAYS, _WITH_GAZE = range(3)


class Carry:
    """Updates maps, scores and costs."""

    def __init__(
        self,
        device: Device,
        pixels: PixelState,
        arrays: Arrays,
        reader: ReaderArrays | None,
        settings: Settings,
        linear: NDArray[np.void],
        dense_flow: bool = False,
    ) -> None:
        """``linear``: the struct Linear; ``dense_flow``: ``arrays.flow`` holds for all cells, not only the changed."""
        geometry, cache = pixels.geometry, settings.cache
        luma = pixels.planes[0]
        grid = grid_of(geometry, settings.allocation.merge)
        self._blocks = blocks_of(grid, CARRY_THREADS)
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("carry_linear" if linear["terms"] else "carry")
        self._carry_upper = program.kernel("carry_upper")
        self._sum_upper = program.kernel("sum_upper", "SUM_THREADS")
        self._parameters = program.parameters(
            "Carry",
            frame=pixels.frame,
            cascade=arrays.cascade,
            changed=pixels.changed,
            fine=luma.level(cache.flow_level),
            coarse=luma.level(TOP_LEVEL),
            fine_before=arrays.fine_before,
            coarse_before=arrays.coarse_before,
            flow=arrays.flow,
            maps=arrays.maps,
            channels=pixels.channels,
            eccentricity=arrays.eccentricity,
            gaze_input=arrays.gaze_input,
            attention_input=arrays.attention_input,
            has_gaze=arrays.has_gaze,
            gaze=arrays.gaze,
            attention_before=arrays.prev_attention,
            age=arrays.age,
            pending=arrays.pending,
            scores=arrays.scores,
            errors=pixels.errors,
            reader_error=reader.error if reader else None,
            seen=reader.seen if reader else None,
            residual=reader.residual if reader else None,
            peak=reader.peak if reader else None,
            participation=None,
            kept=arrays.kept,
            leaf1=arrays.leaf1,
            leaf2=arrays.leaf2,
            leaf3=arrays.leaf3,
            leaf4=arrays.leaf4,
            cells=pixels.colours,
            samples=arrays.upper.samples,
            shares=arrays.upper.shares,
            sums=arrays.upper.sums,
            upper=arrays.upper.leaves,
            grid=grid,
            dense_flow=dense_flow,
            side=CELL >> cache.flow_level,
            cache_enabled=cache.enabled,
            weighting=_weighting(settings),
            max_age=min(cache.max_age, np.iinfo(np.int32).max),
            query_changed=0,
            confidence=cache.confidence,
            blend=cache.blend,
            floor=settings.score.floor,
            linear=linear,
        )

    def set_participation(self, participation: DeviceArray | None, query_changed: bool) -> None:
        """Score with ``participation``, float32[grid], from now on; ``query_changed``: in this frame."""
        self._parameters["participation"] = participation.pointer if participation else 0
        self._parameters["query_changed"] = query_changed

    def enqueue(self, stream: Stream) -> None:
        """Maps, scores, ages and costs of this frame."""
        self._kernel.launch(stream, self._blocks, self._parameters)

    def set_top(self, top: int) -> None:
        """Let ``enqueue_upper`` go up to ``top``."""
        self._parameters["grid"]["top"] = top

    def enqueue_upper(self, stream: Stream) -> None:
        """Costs of the levels above TOP_LEVEL, behind the rest and their samples."""
        self._carry_upper.launch(stream, self._blocks, self._parameters)
        self._sum_upper.launch(stream, 1, self._parameters)


def _weighting(settings: Settings) -> int:
    """When the score makes the weight: ``weighting`` of carry.cu."""
    score, strategy = settings.score, settings.allocation.strategy
    return _ALWAYS if score.always(strategy) else _WITH_GAZE if score.weighs(strategy, gazing=True) else _NEVER
