"""Memory for intermediate results, reused from frame to frame: fresh pages would cost more than the work itself."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


class Scratch:
    """Arrays by name. For one thread."""

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: type[T]) -> NDArray[T]:
        """A contiguous array of undefined content, valid until ``name`` is asked for again. A name has one dtype."""
        last = self._arrays.get(name)
        if last is not None and last.shape == shape:
            return last
        size = math.prod(shape) * np.dtype(dtype).itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[name] = np.empty(size, np.uint8)
        array = self._arrays[name] = buffer[:size].view(dtype).reshape(shape)
        return array
