"""Copies of what the CPU engine's Cascade reads of a frame, in page-locked memory."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frame_input import SLOTS
from foveate.cuda.query.pixel_attributes import PixelAttributes
from foveate.cuda.state import FRAME_STATE, GRID_CHANNELS, PixelState, update_of
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.cpu.pyramid import State, state_of
from foveate.pipeline.frames import FrameView
from foveate.pipeline.plan import StreamPlan


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """Page-locked copies of one frame's PixelState."""

    frame: NDArray[np.void]  # FRAME_STATE[1]
    changed: NDArray[np.uint8]  # [tiles]
    written: NDArray[np.uint8]  # [tiles]
    channels: NDArray[np.float32]  # [7, grid], in the order of GRID_CHANNELS
    levels: Levels


class StateReadback:
    """Copies each frame's pixels, levels and channels into one of several slots, and makes States of them."""

    def __init__(self, memory: Memory, pixels: PixelState, plan: StreamPlan, stream: Stream) -> None:
        """Raises EngineError where there is no memory."""
        self._geometry = pixels.geometry
        self._flow_level = plan.settings.cache.flow_level
        self._attributes = PixelAttributes(memory, pixels, stream) if plan.attributes else None
        self._slots = [_slot(memory, pixels) for _ in range(SLOTS)]
        self._copies = [_copies(slot, pixels) for slot in self._slots]
        self._last: State | None = None
        self._moving = False  # whether the last frame's motion was not zero

    @property
    def captures(self) -> bool:
        """Whether a graph may replay what ``enqueue`` does."""
        return self._attributes is None

    def enqueue(self, index: int, slot: int, stream: Stream) -> None:
        """Enqueue the copies of frame ``index`` into ``slot``, behind its pixels."""
        from pycuda import driver

        if self._attributes is not None:
            self._attributes.enqueue(index, stream)
            self._attributes.fetch(slot, stream)
        for host, array in self._copies[slot]:
            driver.memcpy_dtoh_async(host, array.pointer, stream)

    def state(self, frame: FrameView, slot: int) -> State:
        """The State of ``frame``, whose copies have arrived in ``slot``.

        Called once for every frame, in their order. The State's levels stay until the slot's next ``enqueue``.
        """
        copy = self._slots[slot]
        update = update_of(frame, self._geometry, copy.frame, copy.changed, copy.written)
        last, moved = self._last, self._moving
        self._moving = bool(copy.frame["moving"][0])
        if last is not None and not update.writes and not moved:
            self._last = replace(last, update=update, levels=copy.levels)
        else:
            self._last = state_of(update, copy.levels, self._grid(slot), self._flow_level)
        return self._last

    def _grid(self, slot: int) -> dict[str, NDArray[np.float32]]:
        """The channels computed from pixels, by name."""
        grid = dict(zip(GRID_CHANNELS, self._slots[slot].channels.copy(), strict=True))
        if self._attributes is None:
            return grid
        return grid | {name: values.copy() for name, values in self._attributes.maps(slot).items()}


def _slot(memory: Memory, pixels: PixelState) -> _Slot:
    tiles = pixels.geometry.tiles
    return _Slot(
        memory.pinned((1,), FRAME_STATE),
        memory.pinned(tiles, np.uint8),
        memory.pinned(tiles, np.uint8),
        memory.pinned(pixels.channels.shape, np.float32),
        Levels(pixels.geometry, pixels.subsampled, memory.pinned),
    )


def _copies(slot: _Slot, pixels: PixelState) -> list[tuple[NDArray[Any], DeviceArray]]:
    """Each array of ``slot``, with its source on the device."""
    copies: list[tuple[NDArray[Any], DeviceArray]] = [
        (slot.frame, pixels.frame),
        (slot.changed, pixels.changed),
        (slot.written, pixels.written),
        (slot.channels, pixels.channels),
    ]
    copies += [(error, pixels.errors.part(index)) for index, error in enumerate(slot.levels.errors)]
    for host, device in zip(slot.levels.planes, pixels.planes, strict=True):
        copies += zip((host.pixels, *host.coarse), device.levels, strict=True)
    return copies
