"""Workers that are processes of this machine, which end when this one does, however it ends."""

import json
import os
import select
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from foveate.pipeline.corpus.crew import Worker, WorkerLostError
from foveate.pipeline.corpus.fork_server import ForkServer
from foveate.pipeline.corpus.jobs import Job, Outcome, Task
from foveate.pipeline.corpus.worker import Channels

_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_FOR_EACH_GPU: Final = 4
_CHUNK: Final = 65_536


class ProcessWorker:
    """A process that reads jobs from a pipe, and writes outcomes to another. See Worker."""

    def __init__(self, server: ForkServer, task: Task, environment: Mapping[str, str], debug: bool = False) -> None:
        """``environment`` is added to this process's; ``debug``: it writes to this process's standard error."""
        jobs, self._jobs = os.pipe()
        self.news, news = os.pipe()
        errors = os.open(os.devnull, os.O_WRONLY) if not debug else os.dup(2)
        given = Channels(jobs, news, errors)
        self._server, self._number = server, server.fork(given, environment)
        for descriptor in given:
            os.close(descriptor)
        self._unread = b""
        self._lines: list[bytes] = []
        self._ready = False
        self._ending = ""  # once it has ended, how
        self._send(json.dumps({"task": task.to_json(), "debug": debug}))

    def is_ready(self) -> bool:
        """See Worker: it has written its first line."""
        if not self._ready and self._line() is not None:
            self._ready = True
        return self._ready

    def give(self, job: Job) -> None:
        """See Worker."""
        self._send(json.dumps(asdict(job)))

    def outcome(self) -> Outcome | None:
        """See Worker."""
        line = self._line()
        return None if line is None else Outcome(**json.loads(line))

    def dismiss(self) -> None:
        """See Worker."""
        if self.news >= 0:
            self._server.kill(self._number)

    def stop(self) -> None:
        """See Worker."""
        self._ended()

    def _ended(self) -> str:
        """End it, if it has not ended; how it did."""
        if self.news >= 0:
            os.close(self._jobs)
            os.close(self.news)
            self.news = -1
            self._ending = self._server.end(self._number)
        return self._ending

    def _send(self, line: str) -> None:
        left = line.encode() + b"\n"
        try:
            while left:
                left = left[os.write(self._jobs, left) :]
        except OSError:
            raise WorkerLostError(self._ended()) from None

    def _line(self) -> bytes | None:
        """The next line that it wrote, None where there is none yet. Raises WorkerLostError."""
        while not self._lines and _have_news([self.news], 0.0):
            chunk = os.read(self.news, _CHUNK)
            if not chunk:
                raise WorkerLostError(self._ended())
            *whole, self._unread = (self._unread + chunk).split(b"\n")
            self._lines += whole
        return self._lines.pop(0) if self._lines else None


class ProcessExecutor:
    """Workers in processes of their own. See Executor."""

    def __init__(self, task: Task, debug: bool = False, server: ForkServer | None = None) -> None:
        """``debug``: workers write to this process's standard error. ``server`` is closed at the end."""
        self._server = server or ForkServer()
        self._task, self._debug = task, debug
        devices = [] if task.settings.engine == "cpu" else visible_devices()
        self._devices = devices if task.settings.device is None else devices[:1]  # the settings name it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._server.close()

    def room(self) -> int:
        """See Executor: one for each processor, or four for each GPU, which is what keeps its decoder busy."""
        return _FOR_EACH_GPU * len(self._devices) if self._devices else len(os.sched_getaffinity(0))

    def hire(self, number: int) -> ProcessWorker:
        """See Executor: where there are several GPUs, workers take turns."""
        if not self._server.runs():  # killed from outside, with its workers
            self._server.close()
            self._server = ForkServer()
        several = len(self._devices) > 1
        environment = {_VISIBLE: self._devices[number % len(self._devices)]} if several else {}
        return ProcessWorker(self._server, self._task, environment, self._debug)

    def wait(self, workers: Sequence[Worker], seconds: float) -> None:
        """See Executor."""
        news = [worker.news for worker in workers if isinstance(worker, ProcessWorker) and worker.news >= 0]
        _have_news(news, seconds)

    def stop(self, workers: Sequence[Worker]) -> None:
        """See Executor: none is waited for before all are told."""
        for worker in workers:
            worker.dismiss()
        for worker in workers:
            worker.stop()


def _have_news(descriptors: Sequence[int], seconds: float) -> bool:
    """Wait until one of the pipes can be read, or the time is over. Returns whether one can."""
    poll = select.poll()  # unlike select() for descriptors of any number
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def visible_devices() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; none where there is no sign of one."""
    named = os.environ.get(_VISIBLE)
    if named is not None:
        return [name for name in named.split(",") if name.strip() not in ("", "-1")]
    return [str(number) for number in range(len(list(Path("/dev").glob("nvidia[0-9]*"))))]
