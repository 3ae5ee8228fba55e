"""Memory for intermediate results, reused from frame to frame: fresh pages would cost more than the work itself."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


class Scratch:
    """Buffers by name, each as large as its largest use so far. For one thread."""

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: type[T]) -> NDArray[T]:
        """A contiguous array of undefined content, valid until ``name`` is asked for again."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[name] = np.empty(size, np.uint8)
        return buffer[:size].view(dtype).reshape(shape)
