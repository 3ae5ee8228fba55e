"""The structs of DLPack 0.8 (dmlc), through which libraries pass arrays to each other without a copy."""

import ctypes
from typing import Any, Final

import numpy as np

CPU: Final = 1  # kDLCPU
CUDA: Final = 2  # kDLCUDA
NAME: Final = b"dltensor"  # of a capsule that nobody has taken over

Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class Kind(ctypes.Structure):
    """DLDataType."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("dimensions", ctypes.c_int32),
        ("kind", Kind),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class ManagedTensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter))


_KINDS: Final[dict[np.dtype[Any], tuple[int, int, int]]] = {
    np.dtype(np.uint8): (1, 8, 1),  # kDLUInt
    np.dtype(np.float16): (2, 16, 1),  # kDLFloat
    np.dtype(np.float32): (2, 32, 1),
}


def kind_of(dtype: np.dtype[Any]) -> Kind:
    """Of uint8, float16 and float32."""
    return Kind(*_KINDS[dtype])


def dtype_of(kind: Kind) -> np.dtype[Any] | None:
    """The reverse; None for others."""
    fields = kind.code, kind.bits, kind.lanes
    return next((dtype for dtype, known in _KINDS.items() if known == fields), None)
