"""Driver calls that do not block, made while holding the interpreter's lock (GIL).

The bindings release it around every call. Where several threads work, each of them then has to queue for it
again, which takes far longer than the few microseconds of the call itself. Blocking calls do not belong here.
"""

import ctypes
from functools import cache
from typing import Any, Final

from foveate.cuda.driver.device import checked

_HANDLE: Final = ctypes.c_void_p  # of a stream, an event or a graph
_ADDRESS: Final = ctypes.c_uint64
_SIGNATURES: Final[dict[str, tuple[Any, ...]]] = {
    "cuGraphLaunch": (_HANDLE, _HANDLE),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuEventQuery": (_HANDLE,),
    "cuStreamWaitEvent": (_HANDLE, _HANDLE, ctypes.c_uint),
    "cuMemcpyDtoDAsync_v2": (_ADDRESS, _ADDRESS, ctypes.c_size_t, _HANDLE),
}
_NOT_READY: Final = 600  # CUDA_ERROR_NOT_READY
_WITHOUT_TIME, _SLEEPING = 2, 1  # CU_EVENT_DISABLE_TIMING, CU_EVENT_BLOCKING_SYNC


class Calls:
    """The driver's functions; the context must be current. All raise EngineError for what the driver refuses."""

    def __init__(self) -> None:
        library = ctypes.PyDLL("libcuda.so.1")
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
        self._launch, self._record, self._query = library.cuGraphLaunch, library.cuEventRecord, library.cuEventQuery
        self._wait, self._copy = library.cuStreamWaitEvent, library.cuMemcpyDtoDAsync_v2

    def launch(self, graph: int, stream: int) -> None:
        """Enqueue an instantiated graph."""
        _check(self._launch(graph, stream))

    def record(self, event: int, stream: int) -> None:
        """Record ``event`` behind all work that is on ``stream`` now."""
        _check(self._record(event, stream))

    def reached(self, event: int) -> bool:
        """Whether all work before the last ``record`` is done."""
        code = self._query(event)
        if code != _NOT_READY:
            _check(code)
        return bool(code == 0)

    def wait(self, stream: int, event: int) -> None:
        """Make work that is enqueued on ``stream`` later wait for ``event``."""
        _check(self._wait(stream, event, 0))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Enqueue a copy of ``size`` bytes within the device."""
        _check(self._copy(target, source, size, stream))


@cache
def calls() -> Calls:
    """The driver's functions, loaded on first use."""
    return Calls()


class Event:
    """A CUDA event without timing, on which the host waits without spinning. Freed by its owner."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self._calls = calls()
        self._event: Any = checked(driver.cuEventCreate(_WITHOUT_TIME | _SLEEPING))
        self.handle = int(self._event)

    def record(self, stream: int) -> None:
        """See Calls.record."""
        self._calls.record(self.handle, stream)

    def await_it(self) -> None:
        """Block the host until it is reached; if it is already, without releasing the interpreter's lock."""
        if not self._calls.reached(self.handle):
            checked(self._driver.cuEventSynchronize(self._event))

    def free(self) -> None:
        """Release it."""
        checked(self._driver.cuEventDestroy(self._event))


def _check(code: int) -> None:
    if code:
        from cuda.bindings import driver

        checked((driver.CUresult(code),))
