"""Device arrays for other libraries, without a copy, by DLPack."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from foveate.cuda.driver.dlpack import CUDA, NAME, Deleter, ManagedTensor, kind_of
from foveate.cuda.driver.surfaces import Surface

_LEGACY: Final = 1  # CU_STREAM_LEGACY: the default where a consumer names no stream
_NONE: Final = -1  # no synchronization: the consumer's own concern


@dataclass(frozen=True, slots=True, eq=False)
class _Export:
    """What an exported tensor refers to, kept until the consumer calls the deleter."""

    managed: ManagedTensor
    shape: ctypes.Array[ctypes.c_int64]
    surface: Surface
    stream: int | None


_exports: dict[int, _Export] = {}  # by the address of ``managed``


class DeviceTensor:
    """An array of any shape, row-major, on the device. The memory is reused when nothing refers to it."""

    def __init__(self, surface: Surface, shape: tuple[int, ...], gpu: int, dtype: DTypeLike = np.uint8) -> None:
        """The first values of ``surface``, whose copy is enqueued: uint8, float16 or float32, as the surface's."""
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self._surface = surface
        self._gpu = gpu

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceTensor({self.dtype}{list(self.shape)} on GPU {self._gpu})"

    def __dlpack_device__(self) -> tuple[int, int]:
        """Type and number of the device."""
        return CUDA, self._gpu

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        """A capsule for ``from_dlpack``, without a copy. From any thread.

        What comes next on ``stream``, a CUDA stream by its number, waits for the values; and when the consumer lets
        go, what it has enqueued there by then is waited for before the memory is used again. None is the legacy
        default stream, -1 says that the consumer waits by itself. Raises ValueError for a copy or another device.
        """
        device = options.get("dl_device")
        if options.get("copy") or device not in (None, self.__dlpack_device__()):
            raise ValueError(f"the tensor is exported without a copy, on GPU {self._gpu}; got {options}")
        handle = None if stream == _NONE else _LEGACY if stream is None else stream
        if handle is not None:
            self._surface.await_before(handle)
        return _capsule(_exported(self._surface, self.shape, self._gpu, self.dtype, handle))

    def host(self) -> NDArray[Any]:
        """A copy on the host. From any thread."""
        values = self._surface.download().reshape(-1)
        return np.asarray(values[: int(np.prod(self.shape))].reshape(self.shape), self.dtype)


def _exported(surface: Surface, shape: tuple[int, ...], gpu: int, dtype: np.dtype[Any], stream: int | None) -> int:
    """The address of a new ManagedTensor."""
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    managed = ManagedTensor(deleter=_DELETER)
    tensor = managed.tensor
    tensor.data, tensor.kind = surface.pixels.pointer, kind_of(dtype)
    tensor.device.type, tensor.device.id = CUDA, gpu
    tensor.dimensions, tensor.shape = len(shape), ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    address = ctypes.addressof(managed)
    _exports[address] = _Export(managed, sizes, surface, stream)
    return address


def _let_go(address: int) -> None:
    """Called by a consumer, in whichever thread drops the last of its tensors."""
    export = _exports.pop(address)
    if export.stream is not None:
        export.surface.release_behind(export.stream)


_DELETER: Final = Deleter(_let_go)


def _capsule(address: int) -> Any:
    new, dropped, _ = _python()
    return new(address, NAME, dropped)


@cache
def _python() -> tuple[Callable[..., Any], Any, Any]:
    """Makes capsules; and what is called when one is dropped. A consumer renames the one that it has taken over."""
    api = ctypes.PyDLL(None)  # not ctypes.pythonapi, on which other modules may set other signatures
    new, valid, pointer = api.PyCapsule_New, api.PyCapsule_IsValid, api.PyCapsule_GetPointer
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    valid.restype, valid.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p)
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)

    def drop(capsule: int) -> None:
        if valid(capsule, NAME):
            _let_go(pointer(capsule, NAME))

    kept = Deleter(drop)
    return new, ctypes.cast(kept, ctypes.c_void_p), kept
