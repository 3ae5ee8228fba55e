"""Pooled device memory for decoded pictures, returned by whichever thread drops the last reference."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.calls import calls
from foveate.cuda.driver.device import Device, Stream, borrowed, checked
from foveate.cuda.driver.memory import DeviceArray, out_of_memory
from foveate.pipeline.errors import EngineError

_WITHOUT_TIME = 2  # CU_EVENT_DISABLE_TIMING


class Surface:
    """Memory for one picture, returned to its pool with the last reference.

    Its pixels are valid once the event ``ready`` is reached.
    """

    def __init__(self, pool: SurfacePool, pixels: DeviceArray, ready: int) -> None:
        self.pixels = pixels
        self.ready = ready
        self._pool = pool

    def fill(self, source: int, stream: Stream) -> None:
        """Enqueue a copy from ``source``, an address on the device."""
        calls, handle = self._pool.calls, stream.handle
        calls.copy(self.pixels.pointer, source, self.pixels.nbytes, handle)
        calls.record(self.ready, handle)

    def await_on(self, stream: Stream) -> None:
        """Make work that is enqueued on ``stream`` later wait for the pixels."""
        self._pool.calls.wait(stream.handle, self.ready)

    def await_before(self, stream: int) -> None:
        """The same for any stream, by its handle, and from any thread."""
        with borrowed(self._pool.context):
            self._pool.calls.wait(stream, self.ready)

    def release_behind(self, stream: int) -> None:
        """Make the next use of the memory wait for what is on ``stream`` now. From any thread."""
        with borrowed(self._pool.context):
            self._pool.calls.wait(stream, self.ready)
            self._pool.calls.record(self.ready, stream)

    def download(self) -> NDArray[Any]:
        """A copy of the pixels on the host, from any thread."""
        from cuda.bindings import driver

        pixels = np.empty(self.pixels.shape, self.pixels.dtype)
        with borrowed(self._pool.context):
            checked(driver.cuEventSynchronize(self.ready))
            checked(driver.cuMemcpyDtoH(pixels.ctypes.data, self.pixels.pointer, pixels.nbytes))
        return pixels

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._pool.take_back(self.pixels, self.ready)


class SurfacePool:
    """Surfaces of any shape; as many as are in use at once, which the pipeline's queues bound.

    The process keeps the context, so a picture may outlive the threads that work on the GPU.
    """

    def __init__(self, device: Device, name: str = "decoded picture") -> None:
        """``name``: what one surface is, for messages."""
        from cuda.bindings import driver

        self.driver = driver
        self.calls = calls()
        self._device = device
        self._name = name
        self.context = device.context_handle
        self._lock = threading.RLock()  # reentrant: garbage collection may return a surface at any point
        self._free: list[tuple[DeviceArray, int]] = []
        self._closed = False

    def surface(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> Surface:
        """A surface of undefined content. Called by the thread that owns the GPU. Raises EngineError."""
        with self._lock:
            found = self._reusable(shape, dtype)
        if found is None:
            size = shape[0] * shape[1] * dtype.itemsize
            code, pointer = self.driver.cuMemAlloc(size)
            if int(code):
                raise EngineError(out_of_memory(self._device, f"a {self._name}", size))
            array = DeviceArray(self._name, shape, dtype, int(pointer))
            found = array, int(checked(self.driver.cuEventCreate(_WITHOUT_TIME)))
        return Surface(self, *found)

    def _reusable(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[DeviceArray, int] | None:
        while self._free:
            array, ready = self._free.pop()
            if array.shape == shape and array.dtype == dtype:
                return array, ready
            self._free_one(array, ready)
        return None

    def take_back(self, pixels: DeviceArray, ready: int) -> None:
        """Called by a Surface at its end."""
        with self._lock:
            self._free.append((pixels, ready))
            if self._closed:
                self._release()

    def close(self) -> None:
        """Free what is not in use, and the rest as soon as it is returned. Safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._release()

    def _release(self) -> None:
        with borrowed(self.context):
            while self._free:
                self._free_one(*self._free.pop())

    def _free_one(self, pixels: DeviceArray, ready: int) -> None:
        checked(self.driver.cuMemFree(pixels.pointer))
        checked(self.driver.cuEventDestroy(ready))
