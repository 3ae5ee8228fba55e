"""Patches that were sampled on the host, brought to the device for other libraries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.calls import calls
from foveate.cuda.driver.device import Device
from foveate.cuda.driver.surfaces import SurfacePool
from foveate.cuda.driver.tensors import DeviceTensor
from foveate.pipeline.selection import PATCH

_VALUES = PATCH * PATCH * 3  # of a patch


class PatchesOnDevice:
    """Memory on the device for each frame's patches, used again when nobody holds them."""

    def __init__(self, device: Device, room: int) -> None:
        """``room`` is for how many tokens it begins; it grows."""
        self._device, self._room = device, room
        self._pool = SurfacePool(device)
        self._stream = device.stream()  # of its own: the next frame's work need not be waited for

    def copy_of(self, patches: NDArray[np.uint8]) -> DeviceTensor:
        """uint8[K, PATCH, PATCH, 3] as they are, on the device. Raises EngineError where the card is full."""
        self._room = max(self._room, len(patches))
        surface = self._pool.surface((self._room, _VALUES), patches.dtype)
        surface.await_on(self._stream)
        if len(patches):
            surface.pixels.copy_from(patches, self._stream)
        calls().record(surface.ready, self._stream.handle)
        self._stream.synchronize()
        return DeviceTensor(surface, patches.shape, self._device.index)

    def close(self) -> None:
        """Let go of what is not in anybody's hands."""
        self._pool.close()
