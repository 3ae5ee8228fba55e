"""Device memory, allocated once and by name, and pinned host memory; freed by the object that allocated it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.pipeline.errors import EngineError


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """A contiguous, row-major array in device memory, without padding between rows."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    pointer: int  # 256-byte aligned, or inside an allocation for a part

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def part(self, index: int) -> DeviceArray:
        """The array at ``index`` of the first dimension, in the same memory."""
        if not 0 <= index < self.shape[0]:
            raise IndexError(f"{self.name} has {self.shape[0]} parts, got {index}")
        step = self.nbytes // self.shape[0]
        return DeviceArray(f"{self.name}[{index}]", self.shape[1:], self.dtype, self.pointer + index * step)

    def upload(self, values: NDArray[Any], stream: Stream) -> None:
        """Copy ``values`` here, and wait for it. Raises ValueError for another shape or dtype."""
        if values.shape != self.shape or values.dtype != self.dtype:
            raise ValueError(f"{self.name} takes {self.dtype}{self.shape}, got {values.dtype}{values.shape}")
        from pycuda import driver

        driver.memcpy_htod_async(self.pointer, np.ascontiguousarray(values), stream)
        stream.synchronize()

    def copy_from(self, pinned: NDArray[Any], stream: Stream) -> None:
        """Enqueue a copy of a page-locked array of the same size, which must not change until it is done."""
        from pycuda import driver

        driver.memcpy_htod_async(self.pointer, pinned.reshape(-1), stream)

    def download(self, stream: Stream) -> NDArray[Any]:
        """A copy on the host, once all work on ``stream`` is done."""
        from pycuda import driver

        values = np.empty(self.shape, self.dtype)
        driver.memcpy_dtoh_async(values, self.pointer, stream)
        stream.synchronize()
        return values

    def fill(self, byte: int, stream: Stream) -> None:
        """Set every byte, on ``stream``."""
        from pycuda import driver

        driver.memset_d8_async(self.pointer, byte, self.nbytes, stream)


@dataclass(slots=True)
class Memory:
    """The device and page-locked memory of one owner."""

    device: Device
    _blocks: list[tuple[str, int, Any]] = field(default_factory=list)
    _pinned: list[NDArray[Any]] = field(default_factory=list)

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike, stream: Stream, fill: int = 0) -> DeviceArray:
        """A new array with every byte set to ``fill``, on ``stream``. Raises EngineError where the card is full."""
        kind = np.dtype(dtype)
        size = max(1, math.prod(shape)) * kind.itemsize
        array = DeviceArray(name, shape, kind, self._allocate(name, size))
        array.fill(fill, stream)
        return array

    def pinned(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """A page-locked array on the host, zeroed. Raises EngineError if the system refuses."""
        from pycuda import driver

        try:
            array: NDArray[Any] = driver.pagelocked_zeros(shape, np.dtype(dtype))
        except driver.Error:
            raise EngineError(
                f"no page-locked host memory could be allocated for {np.dtype(dtype)}{list(shape)}"
            ) from None
        self._pinned.append(array)
        return array

    def report(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes in bytes."""
        return tuple((name, size) for name, size, _ in self._blocks)

    def free(self) -> None:
        """Free everything. No work that uses it may still run."""
        while self._blocks:
            self._blocks.pop()[2].free()
        while self._pinned:
            allocation: Any = self._pinned.pop().base
            allocation.free()

    def _allocate(self, name: str, size: int) -> int:
        from pycuda import driver

        try:
            block = driver.mem_alloc(size)
        except driver.MemoryError:
            raise EngineError(out_of_memory(self.device, name, size)) from None
        self._blocks.append((name, size, block))
        return int(block)


def out_of_memory(device: Device, name: str, size: int) -> str:
    """The message for an allocation that failed."""
    free, total = (amount / 2**20 for amount in device.memory())
    return (
        f"{device.name} has no room for {name}: {size / 2**20:.0f} MiB wanted, {free:.0f} of {total:.0f} MiB free; "
        "end other programs on it, choose a higher analysis_level, or use --engine cpu"
    )
