"""The process of a ForkServer: ``python -m foveate.pipeline.corpus.forking SOCKET PARENT``.

A message is a packet of JSON. ``{"fork": NUMBER, "environment": {...}}`` comes with the descriptors of a worker;
``{"kill": NUMBER}`` ends that worker, and so does ``{"end": NUMBER}``, which alone is answered, once it is gone:
``{"code": ...}``, negative for a signal, or ``{"problem": ...}`` where it could not be forked.

The process ends with its socket, and at once with its parent; its workers end with it. It has one thread only, which is
what makes forking safe: nothing that it imports starts another, nor touches a GPU.
"""

import ctypes
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final, NoReturn

from foveate.pipeline.corpus.fork_server import LONGEST
from foveate.pipeline.corpus.worker import Channels, work

_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>


def main() -> None:
    """Fork workers until there is nobody to ask for them."""
    link = socket.socket(fileno=int(sys.argv[1]))
    end_with(int(sys.argv[2]))
    load()
    workers: dict[int, int | str] = {}  # their processes by number, or why there is none
    while message := _received(link):
        order, descriptors = message
        if "fork" in order:
            workers[order["fork"]] = _forked(link, descriptors, order["environment"])
        elif "kill" in order:
            _kill(workers[order["kill"]])
        else:
            link.send(json.dumps(_ended(workers.pop(order["end"]))).encode())


def load() -> None:
    """Import what every worker needs."""
    import cv2

    from foveate.pipeline.engine import import_ahead

    importlib.import_module("foveate.pipeline.corpus.work")
    # With a GPU, processors are idle: each worker imports pyarrow while its decoder is made, and can begin before that.
    if not import_ahead() and find_spec("pyarrow") is not None:
        importlib.import_module("pyarrow.parquet")
    cv2.setNumThreads(1)  # as in the command line: threads gain nothing on small arrays


def end_with(parent: int) -> None:
    """Have this process killed when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)


def _received(link: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    message, descriptors, _, _ = socket.recv_fds(link, LONGEST, len(Channels._fields))
    return (json.loads(message), descriptors) if message else None


def _forked(link: socket.socket, descriptors: list[int], environment: Mapping[str, str]) -> int | str:
    """The process of a new worker, or why there is none."""
    parent = os.getpid()
    worker: int | str
    try:
        worker = os.fork()
    except OSError as error:
        worker = str(error.strerror).lower()
    if worker == 0:
        _become_worker(link, parent, Channels(*descriptors), environment)
    for descriptor in descriptors:
        os.close(descriptor)
    return worker


def _become_worker(link: socket.socket, parent: int, channels: Channels, environment: Mapping[str, str]) -> NoReturn:
    code = 1
    try:
        end_with(parent)
        link.close()
        os.environ.update(environment)
        work(channels)
        code = 0
    finally:
        os._exit(code)  # what was forked is not to be finished here as well


def _kill(worker: int | str) -> None:
    if isinstance(worker, int):
        os.kill(worker, signal.SIGKILL)  # it was not waited for yet, so the number is its own


def _ended(worker: int | str) -> dict[str, Any]:
    _kill(worker)
    if isinstance(worker, str):
        return {"problem": worker}
    return {"code": os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])}


if __name__ == "__main__":
    main()
