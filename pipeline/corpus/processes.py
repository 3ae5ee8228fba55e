"""Workers that are processes of this machine, which end when this one does, however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from foveate.pipeline.corpus.crew import Worker, WorkerLostError
from foveate.pipeline.corpus.jobs import Job, Outcome, Task
from foveate.pipeline.corpus.worker import DEBUG

_MODULE: Final = "foveate.pipeline.corpus.worker"
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_FOR_EACH_GPU: Final = 4
_CHUNK: Final = 65_536


class ProcessWorker:
    """A process that reads jobs from its standard input, and writes outcomes to a pipe. See Worker."""

    def __init__(self, task: Task, device: str | None, debug: bool = False) -> None:
        """``device`` is the GPU that it may use, None: as this process."""
        self.news, writer = os.pipe()
        command = [sys.executable, "-m", _MODULE, str(writer), str(os.getpid()), *([DEBUG] if debug else [])]
        environment = os.environ if device is None else {**os.environ, _VISIBLE: device}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=None if debug else subprocess.DEVNULL,
            pass_fds=[writer],
            env=environment,
            start_new_session=True,  # Ctrl-C is for this process, which ends the others
        )
        os.close(writer)
        self._unread = b""
        self._lines: list[bytes] = []
        self._ready = False
        self._send(task.to_json())

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

    def stop(self) -> None:
        """See Worker."""
        if self.news < 0:
            return
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None, "it was opened with a pipe"
            self._process.stdin.close()
        os.close(self.news)
        self.news = -1

    def _send(self, line: str) -> None:
        assert self._process.stdin is not None, "it was opened with a pipe"
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise WorkerLostError(self._ending()) from None

    def _line(self) -> bytes | None:
        """The next line that it wrote, None where there is none yet. Raises WorkerLostError."""
        while not self._lines and _have_news([self.news], 0.0):
            chunk = os.read(self.news, _CHUNK)
            if not chunk:
                raise WorkerLostError(self._ending())
            *whole, self._unread = (self._unread + chunk).split(b"\n")
            self._lines += whole
        return self._lines.pop(0) if self._lines else None

    def _ending(self) -> str:
        code = self._process.wait()
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"


class ProcessExecutor:
    """Workers in processes of their own. See Executor."""

    def __init__(self, task: Task, debug: bool = False) -> None:
        """``debug``: workers write to this process's standard error."""
        self._task, self._debug = task, debug
        devices = [] if task.settings.engine == "cpu" else visible_devices()
        self._devices = devices if task.settings.device is None else devices[:1]  # the settings name it

    def room(self) -> int:
        """See Executor: one for each processor, or four for each GPU, which is what keeps its decoder busy."""
        return _FOR_EACH_GPU * len(self._devices) if self._devices else len(os.sched_getaffinity(0))

    def hire(self, number: int) -> ProcessWorker:
        """See Executor: where there are several GPUs, workers take turns."""
        device = self._devices[number % len(self._devices)] if len(self._devices) > 1 else None
        return ProcessWorker(self._task, device, self._debug)

    def wait(self, workers: Sequence[Worker], seconds: float) -> None:
        """See Executor."""
        news = [worker.news for worker in workers if isinstance(worker, ProcessWorker) and worker.news >= 0]
        _have_news(news, seconds)


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
