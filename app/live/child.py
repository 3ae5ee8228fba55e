"""A process that reads some of the sources of ``foveate live``: python -m foveate.app.live.child DESCRIPTOR

It ends with 0 where all of its sources have ended, or the main process told it to end, or is gone.
"""

import contextlib
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, Final

from foveate.app.console import Console
from foveate.app.live.group import FAREWELL, SourceGroup
from foveate.app.live.messages import BEAT, Answer, Ask, End, Figures, Job
from foveate.app.signals import Interruption
from foveate.pipeline.errors import FoveateError
from foveate.pipeline.exits import Exit, leave

_ANSWERING: Final = 4  # threads


class _Child:
    """Starts the sources, and does what the main process asks."""

    def __init__(self, parent: Connection, job: Job, console: Console) -> None:
        self._parent = parent
        self._sending = threading.Lock()
        self._group = SourceGroup(job.arguments, job.numbers, console, lambda: None)
        self._shown = dict(zip(job.numbers, self._group.shown, strict=job.arguments.web is not None))
        self._answering = ThreadPoolExecutor(_ANSWERING, thread_name_prefix="foveate-answer")

    def run(self) -> None:
        """Until all sources have ended, or the main process wants that. Raises KeyboardInterrupt."""
        self._group.start()
        patience = FAREWELL
        try:
            patience = self._serve()
        except (EOFError, OSError):  # the main process is gone
            pass
        finally:
            self._group.end(patience)
            self._group.check()
            self._tell()
            self._answering.shutdown(wait=False, cancel_futures=True)

    def _serve(self) -> float:
        """Returns how long the sources get to end."""
        due = 0.0
        while self._group.alive:
            if time.monotonic() >= due:
                due = time.monotonic() + BEAT
                self._group.check()
                self._tell()
            if self._parent.poll(max(0.0, due - time.monotonic())):
                message = self._parent.recv()
                if isinstance(message, End):
                    return message.patience
                self._answering.submit(self._answer, message)
        return FAREWELL

    def _answer(self, ask: Ask) -> None:
        try:
            answer = Answer(ask.key, getattr(self._shown[ask.number], ask.method)(*ask.arguments))
        except ValueError as error:
            answer = Answer(ask.key, refusal=str(error))
        self._send(answer)

    def _tell(self) -> None:
        statuses = tuple((source.status(), source.latencies()) for source in self._group.shown)
        self._send(Figures(tuple(self._group.reports()), statuses))

    def _send(self, message: Any) -> None:
        with self._sending, contextlib.suppress(OSError):  # the main process is gone; that is seen where it is read
            self._parent.send(message)


def main(descriptor: int) -> int:
    """Read the sources of the Job that comes first. Returns the exit code."""
    for number in (signal.SIGINT, signal.SIGHUP):  # sent to the whole terminal; the main process says what follows
        signal.signal(number, signal.SIG_IGN)
    with Connection(descriptor) as parent, Interruption() as interruption:
        job = parent.recv()
        console = Console()
        for address in job.arguments.addresses:
            console.learn(address)
        with console.warnings():
            try:
                _Child(parent, job, console).run()
            except KeyboardInterrupt:
                return interruption.code
            except Exception as error:  # noqa: BLE001 - the outermost place: one line, and the main process goes on
                console.error(str(error) if isinstance(error, FoveateError) else f"internal error: {error!r}")
                return Exit.FAILED
    return Exit.DONE


if __name__ == "__main__":
    leave(main(int(sys.argv[1])))
