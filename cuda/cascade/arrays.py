"""Device memory of the Cascade: data between its kernels, and from frame to frame."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from foveate.cuda.cascade.layout import (
    CASCADE_STATE,
    HEADER,
    TOKEN,
    blocks_of,
    grid_of,
    record_size,
    units_of,
    upper_size,
)
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.structs import constants
from foveate.cuda.state import PixelState
from foveate.pipeline.geometry import CELL, TOP_LEVEL
from foveate.pipeline.settings import Settings
from foveate.pipeline.spec.warped_maps import WarpedMap

MAPS: Final = tuple(warped.name.lower() for warped in WarpedMap)
"""Names of the warped maps, in their order. ``since`` holds int32: frames since the cell was computed."""

CARRY_THREADS: Final = constants(Path(__file__).with_name("carry.cu"))["THREADS"]
"""Of a block of carry.cu, one for each cell of a unit."""

TURNS: Final = 2  # double buffers: the previous frame's maps and this one's


@dataclass(frozen=True, slots=True, eq=False)
class UpperArrays:
    """The levels above TOP_LEVEL, from the finest to the one at which one token covers the picture; see cascade.cuh."""

    samples: tuple[DeviceArray, DeviceArray, DeviceArray]  # float32[samples of all levels]: Y, Cb, Cr
    shares: DeviceArray  # float32[levels, blocks]: weighted error of one token over the cells of a block of carry.cu
    sums: DeviceArray  # float32[roots and nodes above them]
    leaves: DeviceArray  # float32[nodes above the roots]: weighted error of one token


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """All arrays. Grid arrays are row-major over the cells; units and nodes are in the order of cascade.cuh."""

    cascade: DeviceArray  # CASCADE_STATE, shape ()
    feedback: DeviceArray  # int32[1]: whether any was received since the last frame
    has_gaze: DeviceArray  # int32[1]: 0 where there is no gaze
    gaze_point: DeviceArray  # float64[2]: x and y of the gaze, level-0 pixels
    maps: DeviceArray  # float32[maps, turns, grid]
    fine_before: DeviceArray  # float32[level]: luma of the flow level, one frame earlier
    coarse_before: DeviceArray  # float32[grid]: luma of level 4, one frame earlier
    flow: DeviceArray  # float32[3, grid]: dx, dy in cells and confidence
    eccentricity: DeviceArray  # float32[grid]
    gaze_input: DeviceArray  # float32[grid]: a new gaze, else zeros
    attention_input: DeviceArray  # float32[grid]: new attention, else zeros
    gaze: DeviceArray  # float32[grid]
    prev_attention: DeviceArray  # float32[grid]
    age: DeviceArray  # int32[grid]
    pending: DeviceArray  # uint8[grid]
    scores: DeviceArray  # float32[3, grid]: final score, information, perspective
    kept: DeviceArray  # float32[units]
    leaf1: DeviceArray  # float32[units / 4]
    leaf2: DeviceArray  # float32[units / 16]
    leaf3: DeviceArray  # float32[units / 16]: shares of the leaves of level 3
    leaf4: DeviceArray  # float32[units / 16]
    upper: UpperArrays
    header: DeviceArray  # HEADER, shape (1,); the columns follow it
    record: DeviceArray  # uint8: header and columns, as they are copied to the host
    tokens: DeviceArray  # TOKEN[most]

    def warped(self, name: str) -> DeviceArray:
        """float32[turns, grid] of one of MAPS."""
        return self.maps.part(MAPS.index(name))


def allocate_arrays(memory: Memory, pixels: PixelState, settings: Settings, stream: Stream) -> Arrays:
    """All arrays, zeroed but for what is undefined before the first frame, a keyframe. Raises EngineError."""
    geometry = pixels.geometry
    grid = geometry.grid
    units = units_of(grid_of(geometry, settings.allocation.merge))
    side = geometry.level(settings.cache.flow_level)
    most = most_tokens(pixels, settings)

    def floats(name: str, *shape: int) -> DeviceArray:
        return memory.array(name, shape, np.float32, stream)

    record = memory.array("record", (record_size(most),), np.uint8, stream)
    return Arrays(
        cascade=memory.array("cascade state", (), CASCADE_STATE, stream),
        feedback=memory.array("feedback", (1,), np.int32, stream),
        has_gaze=memory.array("has gaze", (1,), np.int32, stream),
        gaze_point=memory.array("gaze point", (2,), np.float64, stream),
        maps=floats("warped maps", len(MAPS), TURNS, *grid),
        fine_before=floats("picture before", *side),
        coarse_before=floats("cells before", *grid),
        flow=floats("flow", 3, *grid),
        eccentricity=floats("eccentricity", *grid),
        gaze_input=floats("new gaze", *grid),
        attention_input=floats("new attention", *grid),
        gaze=floats("gaze", *grid),
        prev_attention=floats("prev_attention", *grid),
        age=memory.array("age", grid, np.int32, stream),
        pending=memory.array("pending", grid, np.uint8, stream),
        scores=floats("scores", 3, *grid),
        kept=floats("kept", units),
        leaf1=floats("leaf1", units // 4),
        leaf2=floats("leaf2", units // 16),
        leaf3=floats("leaf3", units // 16),
        leaf4=floats("leaf4", units // 16),
        upper=_allocate_upper(memory, pixels, settings, stream),
        header=DeviceArray("header", (1,), HEADER, record.pointer),
        record=record,
        tokens=memory.array("tokens", (most,), TOKEN, stream),
    )


def _allocate_upper(memory: Memory, pixels: PixelState, settings: Settings, stream: Stream) -> UpperArrays:
    """Always allocated, as they take a third of what the roots need. Raises EngineError."""
    merge, geometry = settings.allocation.merge, pixels.geometry
    grid, top = grid_of(geometry, merge), geometry.top(1, merge)
    roots, blocks = int(grid["roots"]), blocks_of(grid, CARRY_THREADS)
    samples, nodes = upper_size(*geometry.grid, top), upper_size(int(grid["root_rows"]), int(grid["root_columns"]), top)

    def floats(name: str, *shape: int) -> DeviceArray:
        return memory.array(name, shape, np.float32, stream)

    luma, cb, cr = (floats(f"upper levels of {name}", max(samples, 1)) for name in ("Y", "Cb", "Cr"))
    return UpperArrays(
        samples=(luma, cb, cr),
        shares=floats("shares of upper levels", max(top - TOP_LEVEL, 1), blocks),
        sums=floats("sums of upper levels", roots + nodes),
        leaves=floats("leaves of upper levels", max(nodes, 1)),
    )


def most_tokens(pixels: PixelState, settings: Settings) -> int:
    """No frame has more tokens than this, whatever the budget."""
    grid = grid_of(pixels.geometry, settings.allocation.merge)
    return int(grid["unit_rows"]) * int(grid["unit_columns"]) * settings.allocation.merge**2


@dataclass(frozen=True, slots=True, eq=False)
class ReaderArrays:
    """The reader's picture, with memory "stream"."""

    planes: tuple[DeviceArray, DeviceArray, DeviceArray]  # uint8 over the span of tokens, at each plane's resolution
    seen: DeviceArray  # uint8[grid]: 1 + the LOD at which the reader saw the cell last, and PAINTED; 0: it never did
    stale: DeviceArray  # uint8[tiles]: painted since the last comparison
    error: DeviceArray  # float32[grid]
    residual: DeviceArray  # float32[levels, grid]: error after a token of LOD 1, 2 ... was shown; 0: unknown
    peak: DeviceArray  # float32[grid]: the greatest participation since the reader saw the cell last


def allocate_reader(memory: Memory, pixels: PixelState, stream: Stream) -> ReaderArrays:
    """All arrays, zeroed; the first frame's comparison fills the errors. Raises EngineError."""
    geometry = pixels.geometry
    rows, columns = (cells * CELL for cells in geometry.span)
    luma, cb, cr = (
        memory.array(f"reader's {name}", (rows >> plane.base, columns >> plane.base), np.uint8, stream)
        for name, plane in zip(("luma", "Cb", "Cr"), pixels.planes, strict=True)
    )
    return ReaderArrays(
        (luma, cb, cr),
        memory.array("seen", geometry.grid, np.uint8, stream),
        memory.array("stale", geometry.tiles, np.uint8, stream),
        memory.array("reader's error", geometry.grid, np.float32, stream),
        memory.array("residual errors", (geometry.top(1), *geometry.grid), np.float32, stream),
        memory.array("peak participation", geometry.grid, np.float32, stream),
    )
