"""Waiting for something to happen, within a limit."""

import time
from collections.abc import Callable
from typing import Any


def wait_for(condition: Callable[[], Any], seconds: float = 25.0) -> None:
    """Return as soon as ``condition`` holds. Fails where it does not within ``seconds``."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)
