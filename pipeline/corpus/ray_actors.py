"""Workers that are plain actors of a Ray cluster, one job in flight each. See Executor.

Not Ray Data: there, one file that kills its process stops the pipeline, or takes innocent files with it.
"""

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Final, Self

from foveate.pipeline.corpus.crew import Worker, WorkerLostError
from foveate.pipeline.corpus.jobs import Job, Outcome, Task
from foveate.pipeline.errors import EngineError, SettingsError, one_line
from foveate.pipeline.extras import install_command
from foveate.pipeline.sources.address import shown

LOCAL: Final = "local"
AUTO: Final = "auto"
_CONNECTS: Final = 1.5  # seconds within which an address must take a connection
_ANSWERS: Final = 8.0  # and then answer as a cluster does
BEGINS: Final = 60.0  # seconds within which the first actor must have begun
_ADVICE: Final = {  # by what Ray says
    "AuthenticationError": "the cluster wants its token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what is in its "
    "~/.ray/auth_token",
    "Could not find any running Ray instance": "no cluster runs on this machine; start one with ray start --head, or "
    "use --ray local",
}
_NAMESPACE: Final = "foveate"


class Actor:
    """What runs on the cluster."""

    def __init__(self, task: str) -> None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        import cv2

        from foveate.pipeline.corpus.work import Workplace

        cv2.setNumThreads(1)
        self._workplace = Workplace(Task.from_json(task))

    def ready(self) -> bool:
        """Once it is."""
        return True

    def attempt(self, job: str) -> str:
        """Do a job; both are JSON."""
        return json.dumps(asdict(self._workplace.attempt(Job(**json.loads(job)))))


class ActorWorker:
    """See Worker."""

    def __init__(self, ray: Any, actor: Any, hired: float) -> None:
        """``hired``: when, by time.monotonic()."""
        self._ray, self._actor, self._hired = ray, actor, hired
        self._ready = False
        self.news = actor.ready.remote()

    def is_ready(self) -> bool:
        """See Worker. Raises EngineError where the cluster has no room for it."""
        if not self._ready:
            self._ready = self._result() is not None
            if not self._ready and time.monotonic() - self._hired > BEGINS:
                raise EngineError(
                    f"the Ray cluster has begun no worker within {BEGINS:g} s; it has no processor or GPU to spare: "
                    "lower --workers or --ray-gpus"
                )
        return self._ready

    def give(self, job: Job) -> None:
        """See Worker."""
        self.news = self._actor.attempt.remote(json.dumps(asdict(job)))

    def outcome(self) -> Outcome | None:
        """See Worker."""
        result = self._result()
        return None if result is None else Outcome(**json.loads(result))

    def dismiss(self) -> None:
        """See Worker."""
        self.stop()

    def stop(self) -> None:
        """See Worker."""
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._ray.kill(self._actor, no_restart=True)

    def _result(self) -> Any:
        if not self._ray.wait([self.news], timeout=0)[0]:
            return None
        try:
            return self._ray.get(self.news)
        except self._ray.exceptions.RayActorError:
            raise WorkerLostError("its Ray actor died") from None
        except self._ray.exceptions.RayError as error:
            raise EngineError(f"the Ray worker cannot begin: {one_line(error)}") from error


class RayExecutor:
    """Workers on a cluster. See Executor."""

    def __init__(self, task: Task, address: str, gpus: float = 0.0) -> None:
        """``address``: HOST:PORT of a cluster of which this machine is a node, ``auto`` for the one that runs here, or
        ``local`` for one that lasts as long as this process. Each worker takes ``gpus`` of a GPU.

        Raises SettingsError where Ray is missing, and EngineError where no cluster answers within 10 s.
        """
        _require_ray(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address != LOCAL:
            _require_answer(address)
        import ray

        try:
            with _handlers_kept():
                ray.init(address=address, namespace=_NAMESPACE, logging_level=logging.ERROR, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise EngineError(f"--ray {shown(address)}: {one_line(error)}") from error
        self._ray, self._gpus = ray, gpus
        remote: Any = ray.remote
        kind = remote(Actor).options(num_cpus=1, num_gpus=gpus, max_restarts=0, max_concurrency=1)
        self._hire: Callable[[], Any] = lambda: kind.remote(task.to_json())

    def room(self) -> int:
        """See Executor: by the processors and GPUs of the cluster."""
        held = self._ray.cluster_resources()
        room = held.get("CPU", 1.0)
        if self._gpus > 0:
            room = min(room, held.get("GPU", 0.0) / self._gpus)
        return max(int(room), 1)

    def hire(self, number: int) -> ActorWorker:
        """See Executor."""
        return ActorWorker(self._ray, self._hire(), time.monotonic())

    def wait(self, workers: Sequence[Worker], seconds: float) -> None:
        """See Executor."""
        news = [worker.news for worker in workers if isinstance(worker, ActorWorker)]
        if news:
            self._ray.wait(news, timeout=seconds)

    def stop(self, workers: Sequence[Worker]) -> None:
        """See Executor."""
        for worker in workers:
            worker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._ray.shutdown()


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep this process's handler of SIGTERM, which Ray replaces by its own."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _require_ray(address: str) -> None:
    if find_spec("ray") is None:
        raise SettingsError(f"--ray needs Ray: {install_command('ray')}")
    if "://" in address:
        raise SettingsError(
            f"--ray {shown(address)}: an address is HOST:PORT; run foveate on a node of the cluster, or submit it as a "
            "job of Ray, with --ray auto"
        )


def _require_answer(address: str) -> None:
    """Raise EngineError where no cluster answers: Ray itself would try for more than a minute."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check"]
    if address != AUTO:  # else it finds the address itself, as ray.init() does
        command += ["--address", address]
        _require_connection(address)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWERS, check=False)
    except subprocess.TimeoutExpired:
        raise EngineError(f"--ray {address}: no Ray cluster answers there within {_ANSWERS:g} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it is not healthy"]
        advice = next((advice for text, advice in _ADVICE.items() if text in said[-1]), said[-1][:300])
        raise EngineError(f"--ray {address}: {advice}")


def _require_connection(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise SettingsError(f"--ray {address!r} must be HOST:PORT, auto or local")
    try:
        socket.create_connection((host, int(port)), _CONNECTS).close()
    except (OSError, OverflowError) as error:
        raise EngineError(f"--ray {address}: nobody answers there ({one_line(error)})") from None
