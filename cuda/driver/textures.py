"""Layered mipmapped textures of half floats: made once, written through surfaces, read with filtering."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream, checked
from foveate.cuda.driver.memory import out_of_memory
from foveate.pipeline.errors import EngineError

_LAYERED, _SURFACE = 0x01, 0x02  # CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_SURFACE_LDST
_NORMALISED = 0x02  # CU_TRSF_NORMALIZED_COORDINATES
_HALF: Final = 2  # bytes

MOST_LEVELS: Final = 5


def texture_bytes(shape: tuple[int, int], layers: int, levels: int, components: int = 4) -> int:
    """Bytes of device memory that a texture's texels take; the driver may round up."""
    texels = sum(max(1, shape[0] >> level) * max(1, shape[1] >> level) for level in range(levels)) * layers
    return texels * components * _HALF


class TextureArray:
    """``layers`` pictures of half floats, [rows, columns] at level 0, each level half the one before.

    Texels have four ``components``, R, G, B and A, or fewer: 1 or 2.

    ``surfaces[level]`` are surface objects to write through, x in bytes; ``texture`` is one texture object over all
    levels: normalised coordinates, clamped, linear within and between levels.
    """

    def __init__(
        self, device: Device, name: str, shape: tuple[int, int], layers: int, levels: int, components: int = 4
    ) -> None:
        """Allocate; texels are undefined until they are written. Raises EngineError where the card is full."""
        from cuda.bindings import driver

        self._driver = driver
        self.name, self.shape, self.layers, self.levels = name, shape, layers, levels
        self.components = components
        self.nbytes = texture_bytes(shape, layers, levels, components)
        described = driver.CUDA_ARRAY3D_DESCRIPTOR()
        described.Height, described.Width, described.Depth = *shape, layers
        described.Format = driver.CUarray_format.CU_AD_FORMAT_HALF
        described.NumChannels = components
        described.Flags = _LAYERED | _SURFACE
        code, self._mipmap = driver.cuMipmappedArrayCreate(described, levels)
        if code == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise EngineError(out_of_memory(device, name, self.nbytes))
        checked((code,))
        self._arrays = [checked(driver.cuMipmappedArrayGetLevel(self._mipmap, level)) for level in range(levels)]
        self.surfaces = [int(self._surface(array)) for array in self._arrays]
        self.texture = int(self._texture())

    def _surface(self, array: Any) -> Any:
        resource = self._driver.CUDA_RESOURCE_DESC()
        resource.resType = self._driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        resource.res.array.hArray = array
        return checked(self._driver.cuSurfObjectCreate(resource))

    def _texture(self) -> Any:
        driver = self._driver
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
        resource.res.mipmap.hMipmappedArray = self._mipmap
        reading = driver.CUDA_TEXTURE_DESC()
        reading.addressMode = [driver.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
        reading.filterMode = driver.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR
        reading.mipmapFilterMode = driver.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR
        reading.flags = _NORMALISED
        reading.maxAnisotropy = 1  # fetches name their level, so anisotropy has no use
        reading.maxMipmapLevelClamp = float(self.levels - 1)
        return checked(driver.cuTexObjectCreate(resource, reading, None))

    def level_shape(self, level: int) -> tuple[int, int]:
        """Rows and columns of ``level``."""
        return max(1, self.shape[0] >> level), max(1, self.shape[1] >> level)

    def download(self, level: int, layer: int, stream: Stream) -> NDArray[np.float16]:
        """One layer of one level, float16[rows, columns, components], once all work on ``stream`` is done."""
        texels = np.empty((*self.level_shape(level), self.components), np.float16)
        stream.synchronize()
        copy = self._copy(level, layer, texels)
        copy.srcMemoryType = self._driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
        copy.srcArray, copy.srcZ = self._arrays[level], layer
        copy.dstMemoryType = self._driver.CUmemorytype.CU_MEMORYTYPE_HOST
        copy.dstHost, copy.dstPitch, copy.dstHeight = texels.ctypes.data, texels.strides[0], texels.shape[0]
        checked(self._driver.cuMemcpy3D(copy))
        return texels

    def copy_level(self, level: int, target: int, stream: Stream) -> None:
        """Enqueue a copy of all layers of a level to linear memory: float16[layers, rows, columns, components]."""
        rows, columns = self.level_shape(level)
        copy = self._driver.CUDA_MEMCPY3D()
        copy.WidthInBytes, copy.Height, copy.Depth = columns * self.components * _HALF, rows, self.layers
        copy.srcMemoryType = self._driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
        copy.srcArray = self._arrays[level]
        copy.dstMemoryType = self._driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
        copy.dstDevice, copy.dstPitch, copy.dstHeight = target, copy.WidthInBytes, rows
        checked(self._driver.cuMemcpy3DAsync(copy, int(stream.handle)))

    def clear(self, level: int, layer: int) -> None:
        """Make one layer of one level zero, at once."""
        zeros = np.zeros((*self.level_shape(level), self.components), np.float16)
        copy = self._copy(level, layer, zeros)
        copy.srcMemoryType = self._driver.CUmemorytype.CU_MEMORYTYPE_HOST
        copy.srcHost, copy.srcPitch, copy.srcHeight = zeros.ctypes.data, zeros.strides[0], zeros.shape[0]
        copy.dstMemoryType = self._driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
        copy.dstArray, copy.dstZ = self._arrays[level], layer
        checked(self._driver.cuMemcpy3D(copy))

    def _copy(self, level: int, layer: int, texels: NDArray[np.float16]) -> Any:
        copy = self._driver.CUDA_MEMCPY3D()
        copy.WidthInBytes, copy.Height, copy.Depth = texels.strides[0], texels.shape[0], 1
        return copy

    def free(self) -> None:
        """Release. No work that uses it may still run."""
        checked(self._driver.cuTexObjectDestroy(self.texture))
        for surface in self.surfaces:
            checked(self._driver.cuSurfObjectDestroy(surface))
        checked(self._driver.cuMipmappedArrayDestroy(self._mipmap))
