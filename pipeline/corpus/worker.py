"""What a ProcessWorker does in its process, which forking.py has forked.

Reads the task and then jobs, a line of JSON each; writes a line when it is ready, and one for each outcome. Ends where
no more jobs can come. With ``debug`` it says on standard error what it does when.
"""

import json
import logging
import os
import traceback
from dataclasses import asdict
from typing import Final, NamedTuple

_LOG: Final = logging.getLogger("foveate")
_READY: Final = b"{}\n"


class Channels(NamedTuple):
    """Descriptors of a worker."""

    jobs: int  # read: the task, then jobs
    news: int  # written: that it is ready, then outcomes
    errors: int  # written: its standard error


def work(channels: Channels) -> None:
    """Do jobs until there are no more."""
    from foveate.pipeline.corpus.jobs import Job, Task
    from foveate.pipeline.corpus.work import Workplace

    os.dup2(channels.errors, 2)
    with open(channels.jobs, encoding="utf-8") as jobs, open(channels.news, "wb", buffering=0) as news:
        task = json.loads(jobs.readline())
        if task["debug"]:
            _show_log()
        try:
            workplace = Workplace(Task.from_json(task["task"]))
            news.write(_READY)
            for line in jobs:
                outcome = workplace.attempt(Job(**json.loads(line)))
                news.write(json.dumps(asdict(outcome)).encode() + b"\n")
        except Exception:
            traceback.print_exc()
            raise


def _show_log() -> None:
    """What this process does when, on standard error."""
    logging.basicConfig(format="%(asctime)s.%(msecs)03d %(process)d %(message)s", datefmt="%H:%M:%S")
    _LOG.setLevel(logging.DEBUG)
    _LOG.debug("started")
