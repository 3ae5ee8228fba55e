"""Attributes of single cells, computed on the device from pixels, and their copies on the host."""

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frame_input import SLOTS
from foveate.cuda.query.attributes import Attributes
from foveate.cuda.query.background import BackgroundModel
from foveate.cuda.state import PixelState
from foveate.pipeline.attributes.embedder import PIXEL_ATTRIBUTES
from foveate.pipeline.query.terms import COEFFICIENTS

Maps = NDArray[np.float32]


class PixelAttributes:
    """pipeline.cpu.attributes.AttributeStack on the device, with copies in slots of page-locked memory.

    ``found``, float32[COEFFICIENTS, grid], is laid out as vocabulary.py says; motion and sizes are not computed.
    """

    def __init__(self, memory: Memory, pixels: PixelState, stream: Stream, found: DeviceArray | None = None) -> None:
        """``found`` is allocated unless given. Raises EngineError if the device is out of memory."""
        shape = COEFFICIENTS, *pixels.geometry.grid
        self.found = memory.array("attributes", shape, np.float32, stream) if found is None else found
        self._attributes = Attributes(memory.device, memory, pixels, self.found, stream)
        self._background = BackgroundModel(memory.device, memory, pixels, stream)
        shapes = shape, self._background.maps.shape
        self._slots = [[memory.pinned(shape, np.float32) for shape in shapes] for _ in range(SLOTS)]

    def enqueue(self, index: int, stream: Stream) -> None:
        """Update to frame ``index``, after its pixels. Not for a CUDA graph, as the index changes."""
        self._attributes.enqueue(stream)
        self._background.enqueue(index, stream)

    def fetch(self, slot: int, stream: Stream, with_attributes: bool = True) -> None:
        """Enqueue copies into ``slot``: the background model's maps, and attributes if ``with_attributes``."""
        from pycuda import driver

        found, background = self._slots[slot]
        driver.memcpy_dtoh_async(background, self._background.maps.pointer, stream)
        if with_attributes:
            driver.memcpy_dtoh_async(found, self.found.pointer, stream)

    def maps(self, slot: int) -> dict[str, Maps]:
        """The maps in ``slot`` by name, valid until its next ``fetch``; see AttributeStack.maps."""
        found, (difference, foreground) = self._slots[slot]
        return {
            **{name: found[index] for index, name in PIXEL_ATTRIBUTES.items()},
            "frame_difference": difference,
            "foreground": foreground,
        }
