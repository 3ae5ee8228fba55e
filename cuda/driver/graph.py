"""CUDA graphs: work captured once, and replayed with one launch."""

import importlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Final

from foveate.cuda.driver.calls import calls
from foveate.cuda.driver.device import Stream, checked
from foveate.pipeline.errors import EngineError

_LOG = logging.getLogger("foveate")
_MOST_FAILURES: Final = 3  # of one capture, in a row
_PATIENCE: Final = 0.02  # seconds that a frame waits for its capture, which the next frame can have as well


class BusyError(EngineError):
    """A capture has to wait until calls have ended that would spoil it."""


class Captures:
    """Lets one thread capture at a time; meanwhile none makes a call that would spoil it, of which there may be many.

    So what takes long, such as making a decoder, waits for captures alone, which are brief, and not for its like.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._calls = 0  # that would spoil a capture, now
        self.waiting = 0  # to capture: no further call begins
        self._capturing = False

    @contextmanager
    def kept_off(self) -> Iterator[None]:
        """No thread captures meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._capturing or self.waiting))
            self._calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, limit: float) -> Iterator[None]:
        """No thread does either meanwhile. Raises BusyError where that is not possible within ``limit`` seconds."""
        with self._changed:
            self.waiting += 1
            try:
                free = self._changed.wait_for(lambda: not (self._capturing or self._calls), limit)
            finally:
                self.waiting -= 1
            if not free:
                self._changed.notify_all()
                raise BusyError("calls that would spoil a capture take long")
            self._capturing = True
        try:
            yield
        finally:
            with self._changed:
                self._capturing = False
                self._changed.notify_all()


_captures = Captures()


def no_capture() -> AbstractContextManager[None]:
    """No thread captures meanwhile: for calls that wait for the whole context, which would spoil a capture."""
    return _captures.kept_off()


class CaptureError(EngineError):
    """A capture failed: by ``enqueue`` itself, or by what another thread did meanwhile."""


class Graph:
    """A captured CUDA graph of what ``enqueue`` does. Addresses and kernel parameters stay as captured."""

    def __init__(self, stream: Stream, enqueue: Callable[[Stream], None]) -> None:
        """Capture. ``enqueue`` must neither allocate nor wait. Raises EngineError: a CaptureError, or BusyError."""
        from cuda.bindings import driver

        self._driver = driver
        self._calls = calls()
        handle = int(stream.handle)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        with _captures.alone(_PATIENCE):
            checked(driver.cuStreamBeginCapture(handle, mode))
            try:
                enqueue(stream)
            except (EngineError, importlib.import_module("pycuda.driver").Error) as error:
                driver.cuStreamEndCapture(handle)  # what it holds is of no use
                raise CaptureError(f"a capture failed: {error}") from error
            code, graph = driver.cuStreamEndCapture(handle)
        if int(code):
            raise CaptureError(f"a capture failed: {code.name}")
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


class GraphCapture:
    """Captures one Graph, and gives up after some failures in a row, which cost time at every frame."""

    def __init__(self) -> None:
        self._failures = 0

    def captured(self, stream: Stream, enqueue: Callable[[Stream], None]) -> Graph | None:
        """A Graph; None where the capture failed, or has failed too often, or would have to wait for long.

        Calls into the driver by other threads, such as the video library's, may invalidate a capture at any point, and
        the errors that then come have no common code. If the fault is in ``enqueue``, it fails without a capture as
        well.
        """
        if self._failures >= _MOST_FAILURES:
            return None
        try:
            return Graph(stream, enqueue)
        except BusyError:
            return None
        except CaptureError as error:
            self._failures += 1
            _LOG.debug("%s", error)
            if self._failures == _MOST_FAILURES:
                _warn(str(error))
            return None


@cache
def _warn(reason: str) -> None:
    """Once for each reason, however many streams there are."""
    _LOG.warning(
        "%s, %d times in a row; frames are processed without a CUDA graph, more slowly", reason, _MOST_FAILURES
    )
