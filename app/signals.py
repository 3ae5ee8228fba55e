"""Ctrl-C, SIGTERM, a closed terminal: the first ends the run properly, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType
from typing import Any, TypeVar

from foveate.pipeline.exits import SIGNALLED

T = TypeVar("T")

_SHOW_CURSOR = b"\x1b[?25h"


class Interruption:
    """Turns the first SIGINT, SIGTERM or SIGHUP into KeyboardInterrupt in the main thread, while it is entered.

    A signal that the parent process ignores, as nohup does, stays ignored.
    """

    def __init__(self) -> None:
        self.number: int | None = None  # of the signal that came
        self._previous: dict[int, Any] = {}

    @property
    def code(self) -> int:
        """The exit code that goes with the signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
        return SIGNALLED + (self.number or signal.SIGINT)

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal came and its exception got lost, as in a finalizer."""
        if self.number is not None:
            raise KeyboardInterrupt

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            if number == signal.SIGHUP:  # a closed terminal sends it by way of the shell as well
                return
            if os.isatty(2):
                os.write(2, _SHOW_CURSOR)
            os._exit(SIGNALLED + number)
        self.number = number
        raise KeyboardInterrupt


def interruptible(call: Callable[[], T]) -> T:
    """``call()``, made in a thread of its own, so that Ctrl-C need not wait for it to return.

    Opening a stream may take as long as a server keeps silent, and no signal is handled inside it. Raises what
    ``call`` raises.
    """
    done: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()

    def body() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - it goes to the caller's thread
            done.put((None, error))

    threading.Thread(target=body, name="foveate-open", daemon=True).start()
    result, error = done.get()
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
