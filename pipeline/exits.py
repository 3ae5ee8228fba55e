"""Exit codes of all commands."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes; 128 + n stands for signal n, so 130 for Ctrl-C, 143 for SIGTERM and 129 for SIGHUP."""

    DONE = 0  # also where the reader of standard output went away: it has what it wanted
    FAILED = 1
    WRONG_ARGUMENTS = 2
    DAMAGED = 3
    INTERRUPTED = 130
