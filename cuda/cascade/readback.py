"""Copies of each frame's tokens to the host, and of their pixels where requested."""

from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.arrays import Arrays
from foveate.cuda.cascade.layout import HEADER, READ, offsets, record_size
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.surfaces import Surface, SurfacePool
from foveate.cuda.driver.tensors import DeviceTensor
from foveate.cuda.frame_input import SLOTS
from foveate.pipeline.selection import PATCH
from foveate.pipeline.settings import Settings

_VALUES = PATCH * PATCH * 3  # of a patch
_HEADER: Final = Struct(f"={len(HEADER.names or ())}i")


class Record(NamedTuple):
    """What the host reads of one frame."""

    header: tuple[int, ...]  # the fields of HEADER
    columns: list[NDArray[Any]]  # those of READ, one value per token


class Readback:
    """Copies to the host, each into one of two slots, for up to ``room`` tokens."""

    def __init__(self, device: Device, memory: Memory, arrays: Arrays, settings: Settings, stream: Stream) -> None:
        """Raises EngineError where the card is full."""
        self._device, self._memory, self._arrays = device, memory, arrays
        self._on_host, self._on_device = settings.patches, settings.device_patches
        self._pool = SurfacePool(device) if self._on_device else None
        self._surfaces: list[Surface | None] = [None] * SLOTS
        self.room = 0
        self.patches: DeviceArray | None = None  # uint8[room, PATCH, PATCH, 3]
        self._records: list[NDArray[np.uint8]] = []
        self._columns: list[tuple[np.dtype[Any], int]] = []  # dtypes, and offsets in a record
        self._sampled: list[NDArray[np.uint8]] = []
        self.make_room(settings.allocation.most(settings.rate), stream)

    def make_room(self, budget: int, stream: Stream) -> bool:
        """Make room for ``budget`` tokens, or for all that the picture can have; True if memory was reallocated.

        The slots keep their contents. Waits for ``stream``.
        """
        wanted = min(budget, self._arrays.tokens.shape[0])
        if wanted <= self.room:
            return False
        before, self.room = self.room, min(max(wanted, 2 * self.room), self._arrays.tokens.shape[0])
        stream.synchronize()
        self._make_records(before)
        if self._on_host:
            self._make_sampled()
        if self._on_host or self._on_device:
            self.patches = self._memory.array("patches", (self.room, PATCH, PATCH, 3), np.uint8, stream)
        return True

    def _make_records(self, before: int) -> None:
        """Allocate records for ``room`` tokens, and copy the contents of those for ``before`` tokens."""
        old, size = self._records, record_size(self.room)
        self._records = [self._memory.pinned((size,), np.uint8) for _ in range(SLOTS)]
        here, there = offsets(self.room), offsets(before)
        self._columns = [(kind, here[name]) for name, kind in READ.items()]
        for new, record in zip(self._records, old, strict=False):
            new[: HEADER.itemsize] = record[: HEADER.itemsize]
            for name, kind in READ.items():
                length = before * kind.itemsize
                new[here[name] : here[name] + length] = record[there[name] : there[name] + length]

    def _make_sampled(self) -> None:
        """The same for patches."""
        old, shape = self._sampled, (self.room, PATCH, PATCH, 3)
        self._sampled = [self._memory.pinned(shape, np.uint8) for _ in range(SLOTS)]
        for new, sampled in zip(self._sampled, old, strict=False):
            new[: len(sampled)] = sampled

    def fetch(self, slot: int, stream: Stream) -> None:
        """Enqueue the copies into a slot; this can be captured."""
        from pycuda import driver

        driver.memcpy_dtoh_async(self._records[slot], self._arrays.record.pointer, stream)
        if self._on_host and self.patches is not None:
            driver.memcpy_dtoh_async(self._sampled[slot], self.patches.pointer, stream)

    def export_patches(self, slot: int, stream: Stream) -> None:
        """Enqueue the copy of the patches into memory of the frame's own; so it cannot be captured."""
        if self._pool is None or self.patches is None:
            return
        surface = self._pool.surface((self.room, _VALUES), self.patches.dtype)
        surface.await_on(stream)
        surface.fill(self.patches.pointer, stream)
        self._surfaces[slot] = surface

    def record(self, slot: int) -> Record:
        """A copy of what has arrived."""
        copy = bytearray(self._records[slot])
        header = _HEADER.unpack_from(copy)
        return Record(header, [np.frombuffer(copy, kind, header[0], offset) for kind, offset in self._columns])

    def host_patches(self, slot: int, count: int) -> NDArray[np.uint8] | None:
        """A copy of the patches that have arrived: uint8[count, PATCH, PATCH, 3]."""
        return self._sampled[slot][:count].copy() if self._on_host else None

    def device_patches(self, slot: int, count: int) -> DeviceTensor | None:
        """The device copy of the patches: uint8[count, PATCH, PATCH, 3]."""
        surface, self._surfaces[slot] = self._surfaces[slot], None
        return None if surface is None else DeviceTensor(surface, (count, PATCH, PATCH, 3), self._device.index)

    def free(self) -> None:
        """Free what is not in use; the rest follows when it is dropped."""
        self._surfaces = [None] * SLOTS
        if self._pool is not None:
            self._pool.close()
