"""Loads the compiled kernels; what their Python siblings share."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Plane(ctypes.Structure):
    """One uint8 plane of a frame; see native.h."""

    _fields_ = (
        ("samples", ctypes.c_void_p),
        ("stride", ctypes.c_int64),
        ("width", ctypes.c_int32),
        ("height", ctypes.c_int32),
    )


def _load() -> ctypes.CDLL:
    path = Path(__file__).with_name("_kernels.so")
    if not path.is_file():
        raise ImportError(
            "the compiled kernels are missing; install the package again, from a wheel or with a C compiler"
        )
    return ctypes.CDLL(str(path))


def kernel(name: str, *arguments: type[Any], result: type[Any] | None = None) -> Any:
    """The compiled function ``name``, which takes ``arguments`` (POINTER for any pointer) and returns ``result``.

    Raises ImportError if there is none, because the compiled kernels are older than the sources.
    """
    function = getattr(LIBRARY, name, None)
    if function is None:
        raise ImportError(
            f"the compiled kernels have no {name}: they are older than this code; install the package again"
        )
    function.argtypes = arguments
    function.restype = result
    return function


def address(array: NDArray[Any], dtype: type[np.generic], shape: tuple[int, ...]) -> int:
    """Address of a contiguous array of this type and shape. Keep the array until the call has returned."""
    if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
        raise ValueError(
            f"array must be contiguous {np.dtype(dtype)}{list(shape)}, got {array.dtype}{list(array.shape)}"
        )
    return int(array.ctypes.data)


def plane(samples: NDArray[np.uint8]) -> Plane:
    """A plane uint8[height, width] whose rows are contiguous. Keep the array until the call has returned."""
    if samples.dtype != np.uint8 or samples.ndim != 2 or (samples.strides[1] != 1 and samples.shape[1] > 1):
        raise ValueError(f"plane must be uint8[height, width] with contiguous rows, got {samples.dtype}{samples.shape}")
    height, width = samples.shape
    return Plane(samples.ctypes.data, samples.strides[0], width, height)


LIBRARY = _load()
POINTER = ctypes.c_void_p
