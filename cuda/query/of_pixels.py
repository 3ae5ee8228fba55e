"""What pixels tell of attributes: found on the device, and handed to the host."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.query.attributes import Attributes
from foveate.cuda.query.background import BackgroundModel
from foveate.cuda.state import PixelState
from foveate.pipeline.attributes.embedder import OF_PIXELS
from foveate.pipeline.query.program import COEFFICIENTS

Maps = NDArray[np.float32]


class AttributesOfPixels:
    """The device's pipeline.cpu.attributes.AttributeStack, copied into one of several slots of page-locked memory.

    ``found``, float32[COEFFICIENTS, grid], holds on the device what vocabulary.py says, but for motion and sizes.
    """

    def __init__(
        self, memory: Memory, pixels: PixelState, slots: int, stream: Stream, found: DeviceArray | None = None
    ) -> None:
        """``found`` is allocated where none is given. Raises EngineError where there is no memory."""
        shape = COEFFICIENTS, *pixels.geometry.grid
        self.found = memory.array("attributes", shape, np.float32, stream) if found is None else found
        self._attributes = Attributes(memory.device, memory, pixels, self.found, stream)
        self._background = BackgroundModel(memory.device, memory, pixels, stream)
        shapes = shape, self._background.maps.shape
        self._slots = [[memory.pinned(shape, np.float32) for shape in shapes] for _ in range(slots)]

    def enqueue(self, index: int, stream: Stream) -> None:
        """Bring them up to frame ``index``, behind its pixels. Not to be captured: the index is new."""
        self._attributes.enqueue(stream)
        self._background.enqueue(index, stream)

    def fetch(self, slot: int, stream: Stream, looks: bool = True) -> None:
        """Enqueue copies into ``slot``: the background model's maps, and with ``looks`` what cells look like."""
        from pycuda import driver

        found, background = self._slots[slot]
        driver.memcpy_dtoh_async(background, self._background.maps.pointer, stream)
        if looks:
            driver.memcpy_dtoh_async(found, self.found.pointer, stream)

    def maps(self, slot: int) -> dict[str, Maps]:
        """What has arrived in ``slot``, by name, until its next ``fetch``; see AttributeStack.maps."""
        found, (difference, foreground) = self._slots[slot]
        return {
            **{name: found[index] for index, name in OF_PIXELS.items()},
            "frame_difference": difference,
            "foreground": foreground,
        }
