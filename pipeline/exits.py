"""Exit codes of all commands, and how their processes end."""

import os
import sys
import threading
from enum import IntEnum
from typing import Final

SIGNALLED: Final = 128  # exit codes from here on stand for signals


class Exit(IntEnum):
    """Exit codes; 128 + n stands for signal n, so 130 for Ctrl-C, 143 for SIGTERM and 129 for SIGHUP."""

    DONE = 0  # also where the reader of standard output went away: it has what it wanted
    FAILED = 1
    WRONG_ARGUMENTS = 2
    DAMAGED = 3
    INTERRUPTED = 130


def leave(code: int) -> None:
    """End the process with ``code``: at once after a signal, or if a thread sits in a call that may never return."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:  # the reader went away, or the disk is full: not to be tried again at shutdown
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is sys.stdout and not isinstance(error, BrokenPipeError):
                code = code or Exit.FAILED
    stuck = any(thread.name.startswith("foveate-") for thread in threading.enumerate())
    if stuck or code >= SIGNALLED:
        os._exit(code)
    sys.exit(code)
