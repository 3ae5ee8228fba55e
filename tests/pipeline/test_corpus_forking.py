"""Workers that are forked by a process which has imported what they need."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from foveate.pipeline.corpus.build import Manner, build
from foveate.pipeline.corpus.crew import WorkerLostError
from foveate.pipeline.corpus.fork_server import ENVIRONMENT, ForkServer
from foveate.pipeline.corpus.inputs import expand
from foveate.pipeline.corpus.jobs import Job, Task
from foveate.pipeline.corpus.processes import ProcessExecutor, ProcessWorker
from foveate.pipeline.settings import Settings
from tests.pipeline.corpus_cases import Progress, runs

WITHIN = 60.0  # seconds, on any machine
ALONE = """
import os
from foveate.pipeline.corpus.forking import load
load()
import foveate.cuda.decode.source, foveate.cuda.engine, pyarrow.parquet  # with a GPU, and without one
print(len(os.listdir("/proc/self/task")))
"""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    with ForkServer() as server:
        yield server


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(str(tmp_path / "store"), Settings(engine="cpu"))


def awaited(worker: ProcessWorker) -> ProcessWorker:
    """The worker, once it is ready. Raises WorkerLostError."""
    deadline = time.monotonic() + WITHIN
    while not worker.is_ready():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return worker


def children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_it_has_one_thread_when_it_forks() -> None:
    """Another thread's locks would stay locked in a fork for ever."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **ENVIRONMENT},
    )
    assert done.stdout == "1\n"


def test_without_a_gpu_workers_share_pyarrow() -> None:
    code = (
        "import sys\nfrom foveate.pipeline.corpus.forking import load\nload()\nprint('pyarrow.parquet' in sys.modules)"
    )
    environment = {**os.environ, **ENVIRONMENT}
    for devices, shared in (("", "True\n"), ("0", "False\n")):
        expecting = "from foveate.cuda.driver import device\ndevice.gpu_expected = lambda: True\n" if devices else ""
        done = subprocess.run(
            [sys.executable, "-c", expecting + code],
            capture_output=True,
            text=True,
            check=True,
            env={**environment, "CUDA_VISIBLE_DEVICES": devices},
        )
        assert done.stdout == shared


@pytest.mark.parametrize(
    ("kind", "said"), [(signal.SIGKILL, "its process was ended by SIGKILL"), (signal.SIGTERM, "ended by SIGTERM")]
)
def test_how_a_worker_ended(kind: signal.Signals, said: str, server: ForkServer, task: Task) -> None:
    worker = awaited(ProcessWorker(server, task, {}))
    (pid,) = children(children(os.getpid())[-1])
    os.kill(pid, kind)
    select.select([worker.news], [], [], WITHIN)
    with pytest.raises(WorkerLostError, match=said):
        worker.outcome()
    assert not Path(f"/proc/{pid}").exists()


def test_a_worker_that_cannot_begin(server: ForkServer, tmp_path: Path) -> None:
    worker = ProcessWorker(server, Task("nowhere://store", Settings(engine="cpu")), {})
    with pytest.raises(WorkerLostError, match="its process ended with exit code 1"):
        awaited(worker)


def test_workers_end_with_the_server(task: Task) -> None:
    with ForkServer() as server:
        workers = [awaited(ProcessWorker(server, task, {})) for _ in range(2)]
        pids = children(children(os.getpid())[-1])
        assert len(pids) == 2
    deadline = time.monotonic() + WITHIN
    while any(map(runs, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    for worker in workers:
        with pytest.raises(WorkerLostError, match="the process that forks workers is gone"):
            worker.give(Job("a", "/a", "a"))


def test_another_server_comes_for_one_that_was_killed(task: Task) -> None:
    with ProcessExecutor(task) as executor:
        awaited(executor.hire(0))
        server = children(os.getpid())[-1]
        os.kill(server, signal.SIGKILL)
        os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
        worker = awaited(executor.hire(0))
        worker.stop()


def test_environment_of_a_worker(server: ForkServer, samples: Path, tmp_path: Path) -> None:
    """Seen by a plug-in that tells it by failing."""
    (tmp_path / "model.py").write_text("import os\nraise OSError(os.environ['CUDA_VISIBLE_DEVICES'])\n")
    settings = Settings(engine="cpu", maps=("depth",), depth=f"{tmp_path}/model.py:depth")
    worker = awaited(ProcessWorker(server, Task(str(tmp_path), settings), {"CUDA_VISIBLE_DEVICES": "GPU-7"}))
    worker.give(Job("a", str(samples / "tree.mp4"), "a"))
    while (outcome := worker.outcome()) is None:
        time.sleep(0.005)
    assert "OSError: GPU-7" in outcome.reason


def test_nobody_forks_where_this_process_does_the_work(server: ForkServer, samples: Path, task: Task) -> None:
    settings = task.settings.model_copy(update={"source": task.settings.source.model_copy(update={"frames": 1})})
    videos = expand([str(samples / "tree.mp4")])
    assert build(videos, Task(task.store, settings), Manner(workers=0), Progress(), server) == []
    assert not server.runs()
