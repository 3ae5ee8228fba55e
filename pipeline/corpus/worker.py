"""The process of a ProcessWorker: ``python -m foveate.pipeline.corpus.worker DESCRIPTOR PARENT``.

Reads the task and then jobs from standard input, a line of JSON each; writes a line to the descriptor when it is ready,
and one for each outcome. Ends with its standard input, and at once with its parent. With ``--debug`` behind these, it
says on standard error what it does when.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import sys
from dataclasses import asdict
from typing import Final

from foveate.pipeline.corpus.jobs import Job, Task

DEBUG: Final = "--debug"
_LOG: Final = logging.getLogger("foveate")
_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
_READY: Final = b"{}\n"


def main() -> None:
    """Do jobs until there are no more."""
    descriptor, parent = map(int, sys.argv[1:3])
    _end_with(parent)
    if DEBUG in sys.argv:
        _show_log()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in the command line: threads gain nothing on small arrays
    import cv2

    from foveate.pipeline.corpus.work import Workplace

    cv2.setNumThreads(1)
    _LOG.debug("imported")
    workplace = Workplace(Task.from_json(sys.stdin.readline()))
    with open(descriptor, "wb", buffering=0) as news:
        news.write(_READY)
        for line in sys.stdin:
            outcome = workplace.attempt(Job(**json.loads(line)))
            news.write(json.dumps(asdict(outcome)).encode() + b"\n")


def _show_log() -> None:
    """What this process does when, on standard error."""
    logging.basicConfig(format="%(asctime)s.%(msecs)03d %(process)d %(message)s", datefmt="%H:%M:%S")
    _LOG.setLevel(logging.DEBUG)
    _LOG.debug("started")


def _end_with(parent: int) -> None:
    """Have this process killed when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)


if __name__ == "__main__":
    main()
