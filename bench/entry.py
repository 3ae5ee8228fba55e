"""What the measures that are modules of their own do with errors."""

from __future__ import annotations

import sys
from collections.abc import Callable

from av.error import FFmpegError

from foveate.bench.case import RedCheckError
from foveate.pipeline.errors import FoveateError


def guarded(call: Callable[[], None]) -> int:
    """Call, and return the exit code: an error that is the input's or a red check's becomes one line and 1."""
    try:
        call()
    except (FoveateError, FFmpegError, RedCheckError) as error:
        print(f"foveate: error: {error}", file=sys.stderr)
        return 1
    return 0
