"""Device copies of patches that were sampled on the host."""

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.calls import calls
from foveate.cuda.driver.device import Device
from foveate.cuda.driver.surfaces import SurfacePool
from foveate.cuda.driver.tensors import DeviceTensor
from foveate.pipeline.selection import PATCH

_VALUES = PATCH * PATCH * 3  # of a patch


class PatchesOnDevice:
    """Pooled device memory for each frame's patches."""

    def __init__(self, device: Device, room: int) -> None:
        """``room``: tokens to allocate for at first; it grows."""
        self._device, self._room = device, room
        self._pool = SurfacePool(device)
        self._stream = device.stream()  # so that copies need not wait for the next frame's work

    def copy_of(self, patches: NDArray[np.uint8]) -> DeviceTensor:
        """A device copy of uint8[K, PATCH, PATCH, 3]. Raises EngineError if the device is out of memory."""
        self._room = max(self._room, len(patches))
        surface = self._pool.surface((self._room, _VALUES), patches.dtype)
        surface.await_on(self._stream)
        if len(patches):
            surface.pixels.copy_from(patches, self._stream)
        calls().record(surface.ready, self._stream.handle)
        self._stream.synchronize()
        return DeviceTensor(surface, patches.shape, self._device.index)

    def close(self) -> None:
        """Free what is not in use; the rest follows when it is dropped."""
        self._pool.close()
