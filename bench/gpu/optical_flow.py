"""The optical-flow engine of NVIDIA's cards, by the C interface of NvOFAPI 2.0 in the driver's library.

Its header is nvOpticalFlowCommon.h with nvOpticalFlowCuda.h, of the Optical Flow SDK; numbers and structures are named
as there.
"""

import ctypes
from ctypes import byref, c_char, c_int, c_uint32, c_uint64, c_void_p
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.pipeline.errors import EngineError
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import Map

Picture = NDArray[np.uint8]
Preset = Literal["slow", "medium", "fast"]

LIBRARY: Final = "libnvidia-opticalflow.so.1"
PRESETS: Final[tuple[Preset, ...]] = ("slow", "medium", "fast")
GRID: Final = 4
"""Pixels along the square that each vector is of: the largest one that every engine has."""
_LEVELS: Final[dict[Preset, int]] = {"slow": 5, "medium": 10, "fast": 20}  # NV_OF_PERF_LEVEL
_VERSION: Final = 2 << 4
_OPTICAL_FLOW: Final = 1  # NV_OF_MODE
_INPUT, _OUTPUT = 1, 2  # NV_OF_BUFFER_USAGE
_GRAY, _VECTORS = 1, 5  # NV_OF_BUFFER_FORMAT: GRAYSCALE8, SHORT2
_POINTER: Final = 2  # NV_OF_CUDA_BUFFER_TYPE: CUDEVICEPTR
_FRACTION: Final = 32  # a vector is in 32nds of a pixel
_STATUS: Final = (
    *("SUCCESS", "ERR_OF_NOT_AVAILABLE", "ERR_UNSUPPORTED_DEVICE", "ERR_DEVICE_DOES_NOT_EXIST", "ERR_INVALID_PTR"),
    *("ERR_INVALID_PARAM", "ERR_INVALID_CALL", "ERR_INVALID_VERSION", "ERR_OUT_OF_MEMORY", "ERR_NOT_INITIALIZED"),
    *("ERR_UNSUPPORTED_FEATURE", "ERR_GENERIC"),
)
_FUNCTIONS: Final[tuple[tuple[str, Any, tuple[Any, ...]], ...]] = (
    ("create", c_int, (c_void_p, c_void_p)),
    ("init", c_int, (c_void_p, c_void_p)),
    ("create_buffer", c_int, (c_void_p, c_void_p, c_uint32, c_void_p)),
    ("buffer_array", c_void_p, (c_void_p,)),
    ("buffer_pointer", c_uint64, (c_void_p,)),
    ("buffer_strides", c_int, (c_void_p, c_void_p)),
    ("set_streams", c_int, (c_void_p, c_void_p, c_void_p)),
    ("execute", c_int, (c_void_p, c_void_p, c_void_p)),
    ("destroy_buffer", c_int, (c_void_p,)),
    ("destroy", c_int, (c_void_p,)),
    ("last_error", c_int, (c_void_p, c_void_p, c_void_p)),
    ("capability", c_int, (c_void_p, c_uint32, c_void_p, c_void_p)),
)
"""NV_OF_CUDA_API_FUNCTION_LIST: names, results and arguments, in its order."""


def _words(*names: str) -> list[tuple[str, Any]]:
    return [(name, c_uint32) for name in names]


class _Init(ctypes.Structure):
    """NV_OF_INIT_PARAMS."""

    _fields_ = [
        *_words("width", "height", "grid", "hint_grid", "mode", "level", "hints", "cost"),
        ("private", c_void_p),
        *_words("disparity", "regions"),
    ]


class _Buffer(ctypes.Structure):
    """NV_OF_BUFFER_DESCRIPTOR."""

    _fields_ = _words("width", "height", "usage", "format")


class _Input(ctypes.Structure):
    """NV_OF_EXECUTE_INPUT_PARAMS."""

    _fields_ = [
        *((name, c_void_p) for name in ("frame", "reference", "hints")),
        *_words("no_temporal_hints", "padding"),
        ("private", c_void_p),
        *_words("padding2", "region_count"),
        ("regions", c_void_p),
    ]


class _Output(ctypes.Structure):
    """NV_OF_EXECUTE_OUTPUT_PARAMS."""

    _fields_ = [(name, c_void_p) for name in ("vectors", "cost", "private")]


class _Api:
    """The functions that the library hands out. Raises EngineError."""

    def __init__(self) -> None:
        try:
            library = ctypes.CDLL(LIBRARY)
        except OSError:
            raise EngineError(f"the driver's library {LIBRARY} is missing or does not load") from None
        pointers = (c_void_p * len(_FUNCTIONS))()
        _check(library.NvOFAPICreateInstanceCuda(c_uint32(_VERSION), byref(pointers)), "NvOFAPICreateInstanceCuda")
        self._calls = {
            name: ctypes.CFUNCTYPE(result, *arguments)(pointer)
            for (name, result, arguments), pointer in zip(_FUNCTIONS, pointers, strict=True)
        }

    def value(self, name: str, *arguments: Any) -> Any:
        """What a function returns."""
        return self._calls[name](*arguments)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a status. Raises EngineError for all but success."""
        _check(self._calls[name](*arguments), name)


def _check(status: int, name: str) -> None:
    if status:
        told = _STATUS[status] if 0 < status < len(_STATUS) else f"status {status}"
        raise EngineError(f"the optical-flow engine refuses {name}: NV_OF_{told}")


class OpticalFlowEngine:
    """One session, for pictures of one size. Made, used and closed by the thread that owns the GPU."""

    def __init__(self, device: Device, stream: Stream, width: int, height: int, preset: Preset) -> None:
        """Raises EngineError, also where the card has no such engine, or none for this size."""
        self._stream, self._shape = stream, (height, width)
        self._grid = -(-height // GRID), -(-width // GRID)
        self._api = _Api()
        self._session, self._buffers = c_void_p(), list[c_void_p]()
        self._api.call("create", device.context_handle, byref(self._session))
        try:
            init = _Init(width, height, GRID, mode=_OPTICAL_FLOW, level=_LEVELS[preset])
            self._initialize(init)
            self._api.call("set_streams", self._session, int(stream.handle), int(stream.handle))
            self._pictures = [self._buffer(width, height, _INPUT, _GRAY) for _ in range(2)]
            self._vectors = self._buffer(self._grid[1], self._grid[0], _OUTPUT, _VECTORS)
        except BaseException:
            self.close()
            raise

    def _initialize(self, init: _Init) -> None:
        try:
            self._api.call("init", self._session, byref(init))
        except EngineError as error:
            text, size = (c_char * 256)(), c_uint32(256)
            self._api.value("last_error", self._session, text, byref(size))
            told = text.value.decode(errors="replace").strip()
            raise EngineError(f"{error} ({told})" if told else str(error)) from None

    def _buffer(self, width: int, height: int, usage: int, kind: int) -> c_void_p:
        buffer = c_void_p()
        self._api.call(
            "create_buffer", self._session, byref(_Buffer(width, height, usage, kind)), _POINTER, byref(buffer)
        )
        self._buffers.append(buffer)
        return buffer

    def upload(self, picture: Picture) -> None:
        """Bring the next picture to the card, uint8[height, width]; the one before it becomes the reference."""
        self._pictures.reverse()
        self._copy(self._pictures[1], picture, to_card=True)

    def execute(self) -> None:
        """Enqueue the search from the last picture to the one before it."""
        before, now = self._pictures
        given = _Input(now, before)
        self._api.call("execute", self._session, byref(given), byref(_Output(self._vectors)))

    def motion(self) -> Map:
        """What was found, in pixels right and down, once that is done: float32[rows, columns, 2] of squares."""
        found = np.empty((self._grid[0], self._grid[1], 2), np.int16)
        self._copy(self._vectors, found.view(np.uint8).reshape(self._grid[0], -1), to_card=False)
        return found.astype(np.float32) / np.float32(_FRACTION)

    def _copy(self, buffer: c_void_p, values: Picture, to_card: bool) -> None:
        """Copy rows of bytes, and wait for it."""
        from pycuda import driver

        strides = (c_uint32 * 7)()  # NV_OF_CUDA_BUFFER_STRIDE_INFO: bytes from row to row, and rows, of three planes
        self._api.call("buffer_strides", buffer, byref(strides))
        copy, pointer = driver.Memcpy2D(), self._api.value("buffer_pointer", buffer)
        if to_card:
            copy.set_src_host(values)
            copy.set_dst_device(pointer)
        else:
            copy.set_src_device(pointer)
            copy.set_dst_host(values)
        pitches = values.strides[0], strides[0]
        copy.src_pitch, copy.dst_pitch = pitches if to_card else pitches[::-1]
        copy.height, copy.width_in_bytes = values.shape
        copy(self._stream)
        self._stream.synchronize()

    def close(self) -> None:
        """Release everything. Safe to call twice."""
        self._stream.synchronize()
        while self._buffers:
            self._api.value("destroy_buffer", self._buffers.pop())
        if self._session:
            self._api.value("destroy", self._session)
            self._session = c_void_p()


def cell_flow(motion: Map, side: int) -> Flow:
    """The mean motion of each cell of ``side`` x ``side`` squares, of pictures whose cells have side * GRID pixels.

    ``motion``: float32[rows * side, columns * side, 2], as OpticalFlowEngine finds it. Confidence is 1 everywhere.
    """
    rows, columns = motion.shape[0] // side, motion.shape[1] // side
    means = motion.reshape(rows, side, columns, side, 2).mean(axis=(1, 3)) / np.float32(side * GRID)
    return Flow(means[..., 0].copy(), means[..., 1].copy(), np.ones((rows, columns), np.float32))
