"""The latency fields in the record of a live frame: ``captured``, ``arrived`` and ``latency``."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from foveate.pipeline.frames import LiveTimes
from foveate.pipeline.live.opening import TOKENS, reached
from foveate.pipeline.selection import Step


def with_latency(steps: Iterable[Step], name: str) -> Iterator[Step]:
    """Add ``captured`` and ``arrived`` (seconds since 1970) and ``latency`` (seconds from arrival to tokens).

    Frames of files pass unchanged. ``name`` is the source's.
    """
    first = True
    for step in steps:
        if first and step.frame.live is not None:
            reached(name, TOKENS)
        first = False
        yield step if step.frame.live is None else _dated(step, step.frame.live)
        del step  # not to be held while waiting for the next one


def _dated(step: Step, live: LiveTimes) -> Step:
    now, wall = time.monotonic(), time.time()
    extras = {
        "captured": round(wall - (now - live.captured), 4),
        "arrived": round(wall - (now - live.arrived), 4),
        "latency": round(now - live.arrived, 4),
    }
    return Step(step.frame, replace(step.selection, extras={**step.selection.extras, **extras}))
