"""Device memory that decoded pictures live in, returned when nobody holds the picture any more, in whichever thread."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.device import Device, borrowed, checked
from foveate.cuda.memory import DeviceArray, out_of_memory
from foveate.pipeline.errors import EngineError


class Surface:
    """Room for one picture; goes back to its pool when the last reference to it ends."""

    def __init__(self, pool: SurfacePool, pixels: DeviceArray) -> None:
        self.pixels = pixels
        self._pool = pool

    def download(self) -> NDArray[Any]:
        """A copy of the pixels on the host, from any thread."""
        from cuda.bindings import driver

        pixels = np.empty(self.pixels.shape, self.pixels.dtype)
        with borrowed(self._pool.context):
            checked(driver.cuMemcpyDtoH(pixels.ctypes.data, self.pixels.pointer, pixels.nbytes))
        return pixels

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._pool.take_back(self.pixels)


class SurfacePool:
    """Surfaces of any shape; as many as are in use at once, which the channels of the pipeline bound.

    The process keeps the context, so a picture may outlive the threads that work on the GPU.
    """

    def __init__(self, device: Device) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self._device = device
        self.context = device.context_handle
        self._lock = threading.RLock()  # a picture may end in the midst of anything
        self._free: list[DeviceArray] = []
        self._closed = False

    def surface(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> Surface:
        """A surface of undefined content. Called by the thread that owns the GPU. Raises EngineError."""
        with self._lock:
            array = self._reusable(shape, dtype)
        if array is None:
            size = shape[0] * shape[1] * dtype.itemsize
            code, pointer = self._driver.cuMemAlloc(size)
            if int(code):
                raise EngineError(out_of_memory(self._device, "a decoded picture", size))
            array = DeviceArray("decoded picture", shape, dtype, int(pointer))
        return Surface(self, array)

    def _reusable(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> DeviceArray | None:
        while self._free:
            array = self._free.pop()
            if array.shape == shape and array.dtype == dtype:
                return array
            checked(self._driver.cuMemFree(array.pointer))
        return None

    def take_back(self, pixels: DeviceArray) -> None:
        """Called by a Surface at its end."""
        with self._lock:
            self._free.append(pixels)
            if self._closed:
                self._release()

    def close(self) -> None:
        """Release what is not in use; the rest follows when it is no longer. Safe to call twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._release()

    def _release(self) -> None:
        with borrowed(self.context):
            while self._free:
                checked(self._driver.cuMemFree(self._free.pop().pointer))
