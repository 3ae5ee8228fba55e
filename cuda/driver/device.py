"""The GPU as one thread owns it: the primary context (shared with torch), streams, and errors in one line."""

import importlib
import importlib.util
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from foveate.pipeline.errors import EngineError, first_line
from foveate.pipeline.extras import install_command

Stream = Any
"""A pycuda.driver.Stream. Kernels and copies are given one; only Device makes them."""

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: never waits for the legacy default stream
_PACKAGES = ("pycuda.driver", "cuda.bindings.driver", "cuda.bindings.nvrtc")
_DRIVER = Path("/dev/nvidiactl")


def checked(answer: tuple[Any, ...]) -> Any:
    """What a call of cuda.bindings returns beside its error code: nothing, one value, or a tuple.

    Raises EngineError with the driver's name of the error.
    """
    code, *values = answer
    if int(code):
        raise EngineError(f"the GPU reports {code.name}; run 'foveate doctor'")
    return values[0] if len(values) == 1 else tuple(values) or None


def gpu_problem() -> str | None:
    """Why no GPU can be used, in one line without a full stop; None if one can."""
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return f"{name} cannot be imported ({first_line(error)}): {install_command('cuda')}"
    from pycuda import driver

    try:
        driver.init()
        count = driver.Device.count()
    except driver.Error as error:
        return f"the NVIDIA driver does not answer ({first_line(error)})"
    return None if count else "the NVIDIA driver finds no device"


def check_number(index: int) -> None:
    """Raise EngineError where there is no GPU of that number. ``gpu_problem`` must be None."""
    from pycuda import driver

    count = driver.Device.count()
    if index >= count:
        raise EngineError(f"device must be at most {count - 1}, the number of the last GPU, got {index}")


def gpu_count() -> int:
    """How many GPUs there are to compute on."""
    if gpu_problem() is not None:
        return 0
    from pycuda import driver

    return int(driver.Device.count())


def gpu_expected() -> bool:
    """True if an NVIDIA driver or pycuda is installed, and GPUs are not hidden by CUDA_VISIBLE_DEVICES."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    return _DRIVER.exists() or importlib.util.find_spec("pycuda") is not None


_held = threading.local()  # per thread: the context, and how many Devices hold it
_kept: set[int] = set()  # GPUs whose primary context this process keeps until it ends


def _keep_primary(index: int) -> tuple[Any, ...]:
    """Retain the primary context for good: creating one takes longer than processing a second of video."""
    from cuda.bindings import driver

    if index in _kept:
        return (driver.CUresult.CUDA_SUCCESS,)
    _kept.add(index)
    return tuple(driver.cuDevicePrimaryCtxRetain(index))


class Device:
    """One GPU, held by the thread that made this object until it closes it.

    A thread that holds it already may hold it again; the last ``close`` gives the context back.
    """

    def __init__(self, index: int = 0) -> None:
        """Take the primary context of GPU ``index``. Raises EngineError."""
        problem = gpu_problem()
        if problem:
            raise EngineError(f"engine 'cuda' cannot run: {problem}; use --engine cpu")
        from pycuda import driver

        self._driver = driver
        self._open = True
        try:
            device = driver.Device(index)
            if not getattr(_held, "holds", 0):
                _held.context = device.retain_primary_context()
                _held.context.push()
                _held.holds = 0
            _held.holds += 1
            checked(_keep_primary(index))
        except driver.Error as error:
            raise EngineError(f"GPU {index} cannot be used: {first_line(error)}; use --engine cpu") from None
        self.index = index
        self.name: str = device.name()
        major, minor = device.compute_capability()
        self.architecture = f"sm_{major}{minor}"
        self.processors: int = device.get_attribute(driver.device_attribute.MULTIPROCESSOR_COUNT)
        self._streams: list[Stream] = []

    def stream(self) -> Stream:
        """A new stream, valid until the device is closed."""
        stream = self._driver.Stream(_NON_BLOCKING)
        self._streams.append(stream)
        return stream

    @property
    def context_handle(self) -> int:
        """The context, for libraries that take one: a CUcontext as a number."""
        return int(checked(importlib.import_module("cuda.bindings.driver").cuCtxGetCurrent()))

    def event(self) -> Any:
        """A new pycuda.driver.Event, with timing."""
        return self._driver.Event()

    def memory(self) -> tuple[int, int]:
        """Free and total bytes of device memory."""
        free, total = self._driver.mem_get_info()
        return int(free), int(total)

    def synchronize(self) -> None:
        """Wait for everything in the context, other threads' work too. Raises EngineError where a kernel failed.

        Not while a thread captures: waiting for a stream is enough for what was enqueued there.
        """
        with self.errors():
            self._driver.Context.synchronize()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn pycuda's errors into EngineErrors of one line."""
        try:
            yield
        except self._driver.Error as error:
            raise EngineError(f"{self.name} failed: {first_line(error)}") from None

    def close(self) -> None:
        """Give the context back. Called by the thread that made it; safe to call twice."""
        if not self._open:
            return
        self._open = False
        self._streams.clear()
        _held.holds = getattr(_held, "holds", 0) - 1
        if _held.holds <= 0:
            release_thread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def borrowed(context: int) -> Iterator[None]:
    """Make a context (see ``context_handle``) current in a thread that does not own the GPU."""
    from cuda.bindings import driver

    checked(driver.cuCtxPushCurrent(context))
    try:
        yield
    finally:
        checked(driver.cuCtxPopCurrent())


def release_thread() -> None:
    """Pop every context of this thread: PyCUDA aborts the process if a thread ends with one."""
    driver = importlib.import_module("pycuda.driver")
    _held.holds, _held.context = 0, None
    with suppress(driver.Error):
        while True:
            driver.Context.pop()
