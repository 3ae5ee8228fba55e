"""Arrays of other libraries on the device, read in place, by DLPack."""

import ctypes
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from foveate.cuda.driver import dlpack
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.dlpack import NAME, ManagedTensor


@dataclass(frozen=True, slots=True, eq=False)
class TensorView:
    """An array in device memory that someone else owns, and lends until ``owner`` is dropped."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in values, not bytes
    dtype: np.dtype[Any]
    owner: Any

    @property
    def contiguous(self) -> bool:
        """Whether it lies row-major without gaps; strides of dimensions of one may be anything."""
        steps = zip(self.shape, self.strides, row_major(self.shape), strict=True)
        return all(size == 1 or stride == step for size, stride, step in steps) or math.prod(self.shape) == 0


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in values of an array without gaps."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def is_on_host(values: Any) -> bool:
    """Whether ``values`` is a NumPy array or another library's array in host memory."""
    return isinstance(values, np.ndarray) or int(values.__dlpack_device__()[0]) == dlpack.CPU


def view_of(values: Any, gpu: int, stream: Stream) -> TensorView:
    """uint8, float16 or float32 on GPU ``gpu``; work that is enqueued on ``stream`` later waits for the values.

    Raises ValueError for another device or type, and what the owner raises for arrays that it does not lend.
    """
    place = tuple(int(part) for part in values.__dlpack_device__())
    if place != (dlpack.CUDA, gpu):
        raise ValueError(f"the array must be on GPU {gpu} or on the host, got DLPack device {place}")
    capsule = values.__dlpack__(stream=int(stream.handle))
    tensor = ManagedTensor.from_address(_pointer()(capsule, NAME)).tensor
    dtype = dlpack.dtype_of(tensor.kind)
    if dtype is None:
        kind = tensor.kind
        raise ValueError(f"values must be uint8, float16 or float32, got DLPack type {kind.code} of {kind.bits} bits")
    axes = range(tensor.dimensions)
    shape = tuple(tensor.shape[axis] for axis in axes)
    strides = tuple(tensor.strides[axis] for axis in axes) if tensor.strides else row_major(shape)
    return TensorView((tensor.data or 0) + tensor.offset, shape, strides, dtype, capsule)


@cache
def _pointer() -> Any:
    """The address in a capsule of the name given. A capsule that keeps its name frees its array when it is dropped."""
    function = ctypes.PyDLL(None).PyCapsule_GetPointer
    function.restype, function.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return function
