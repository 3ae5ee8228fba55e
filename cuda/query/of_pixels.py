"""What pixels tell of attributes: found on the device, and handed to the host."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.device import Stream
from foveate.cuda.memory import Memory
from foveate.cuda.query.attributes import Attributes
from foveate.cuda.query.rest import Rest
from foveate.cuda.state import PixelState
from foveate.pipeline.query.attributes.embedder import OF_PIXELS
from foveate.pipeline.query.program import COEFFICIENTS

Maps = NDArray[np.float32]


class AttributesOfPixels:
    """The device's pipeline.cpu.attributes.AttributeStack, copied into one of several slots of page-locked memory."""

    def __init__(self, memory: Memory, pixels: PixelState, slots: int, stream: Stream) -> None:
        """Raises EngineError where there is no memory."""
        self._found = memory.array("attributes", (COEFFICIENTS, *pixels.geometry.grid), np.float32, stream)
        self._attributes = Attributes(memory.device, memory, pixels, self._found, stream)
        self._rest = Rest(memory.device, memory, pixels, stream)
        shapes = self._found.shape, self._rest.maps.shape
        self._slots = [[memory.pinned(shape, np.float32) for shape in shapes] for _ in range(slots)]

    def enqueue(self, index: int, slot: int, stream: Stream) -> None:
        """Bring them up to frame ``index``, behind its pixels, and copy them. Not to be captured: the index is new."""
        from pycuda import driver

        self._attributes.enqueue(stream)
        self._rest.enqueue(index, stream)
        for host, array in zip(self._slots[slot], (self._found, self._rest.maps), strict=True):
            driver.memcpy_dtoh_async(host, array.pointer, stream)

    def maps(self, slot: int) -> dict[str, Maps]:
        """What has arrived in ``slot``, by name, float32[grid] of their own; see AttributeStack.maps."""
        found, rest = self._slots[slot]
        return by_name(found.copy(), rest.copy())


def by_name(found: Maps, rest: Maps) -> dict[str, Maps]:
    """Views float32[grid] of what Attributes and Rest found, as AttributeStack.maps names it."""
    return {**{name: found[index] for index, name in OF_PIXELS.items()}, "stirs": rest[0], "moved": rest[1]}
