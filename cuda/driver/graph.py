"""Work captured once and replayed with one launch."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from foveate.cuda.driver.calls import calls
from foveate.cuda.driver.device import Stream, checked
from foveate.pipeline.errors import EngineError

_capturing = threading.Lock()


@contextmanager
def no_capture() -> Iterator[None]:
    """No thread captures meanwhile: for calls that wait for the whole context, which would spoil a capture."""
    with _capturing:
        yield


class Graph:
    """What ``enqueue`` put on a stream, replayed as often as wanted. Addresses and parameters stay as captured."""

    def __init__(self, stream: Stream, enqueue: Callable[[Stream], None]) -> None:
        """Capture. ``enqueue`` must neither allocate nor wait. Raises EngineError."""
        from cuda.bindings import driver

        self._driver = driver
        self._calls = calls()
        handle = int(stream.handle)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        with no_capture():
            checked(driver.cuStreamBeginCapture(handle, mode))
            try:
                enqueue(stream)
            finally:
                captured = driver.cuStreamEndCapture(handle)
        graph = checked(captured)
        try:
            self._executable = checked(driver.cuGraphInstantiate(graph, 0))
            self._handle = int(self._executable)
        finally:
            checked(driver.cuGraphDestroy(graph))

    def launch(self, stream: Stream) -> None:
        """Enqueue everything on ``stream``."""
        self._calls.launch(self._handle, stream.handle)

    def free(self) -> None:
        """Release. The last launch must have ended."""
        checked(self._driver.cuGraphExecDestroy(self._executable))


def captured(stream: Stream, enqueue: Callable[[Stream], None]) -> Graph | None:
    """A Graph; None where another library's call in another thread spoilt the capture: it can be tried again."""
    driver_error: type[Exception] = importlib.import_module("pycuda.driver").Error
    try:
        return Graph(stream, enqueue)
    except (EngineError, driver_error) as error:
        if "capture" in str(error).lower():
            return None
        raise
