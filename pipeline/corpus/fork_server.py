"""A process that imports what workers need once, and forks them: a worker then begins within milliseconds.

It may be started before anything is known of the work, and imports while its parent does. Here is the parent's side;
``pipeline/corpus/forking.py`` is the process. Importing this module costs nothing.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

_MODULE: Final = "foveate.pipeline.corpus.forking"
ENVIRONMENT: Final = {
    "OPENBLAS_NUM_THREADS": "1",  # of NumPy, and a thread of pyarrow's allocator: a process that forks has one thread
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
LONGEST: Final = 65_536  # bytes of a message


class ForkServer:
    """The process, as its parent sees it. Used by one thread; a context, at whose end no process is left."""

    def __init__(self) -> None:
        self._link, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._forked = 0
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(other.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                env={**ENVIRONMENT, **os.environ},
                start_new_session=True,  # Ctrl-C is for the parent, which ends the others
            )

    def fork(self, descriptors: Sequence[int], environment: Mapping[str, str]) -> int:
        """Fork a worker, with these descriptors for its parameters of worker.work; the caller closes its own copies.

        ``environment`` is added to the worker's. Returns its number.
        """
        self._forked += 1
        self._order({"fork": self._forked, "environment": dict(environment)}, descriptors)
        return self._forked

    def kill(self, number: int) -> None:
        """Send SIGKILL to a worker that was not ended."""
        self._order({"kill": number})

    def end(self, number: int) -> str:
        """Kill a worker, and wait until it is gone. Returns how it ended, as in "its process was ended by SIGKILL"."""
        self._order({"end": number})
        answer = b""
        with contextlib.suppress(OSError):
            answer = self._link.recv(LONGEST)
        if not answer:
            return f"the process that forks workers is gone: {_ending(self._process.wait())}"
        told: dict[str, Any] = json.loads(answer)
        return _ending(told["code"]) if "code" in told else f"its process could not begin: {told['problem']}"

    def _order(self, order: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        with contextlib.suppress(OSError):  # that the server is gone is seen when a worker is ended
            socket.send_fds(self._link, [json.dumps(order).encode()], descriptors)

    def runs(self) -> bool:
        """Whether it is there."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process, and with it workers that were not ended. Safe to call twice."""
        self._process.kill()
        self._process.wait()
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def _ending(code: int) -> str:
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"
