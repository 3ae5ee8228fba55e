"""What the record of a live frame tells besides: when it was taken, when it came, and how long its tokens took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from foveate.pipeline.selection import Step


def stamped(steps: Iterable[Step]) -> Iterator[Step]:
    """Add ``captured`` and ``arrived`` (seconds since 1970) and ``latency`` (seconds from arrival to tokens).

    Frames of files pass as they are.
    """
    for step in steps:
        moment = step.frame.live
        if moment is None:
            yield step
            continue
        now, wall = time.monotonic(), time.time()
        extras = {
            "captured": round(wall - (now - moment.captured), 4),
            "arrived": round(wall - (now - moment.arrived), 4),
            "latency": round(now - moment.arrived, 4),
        }
        yield Step(step.frame, replace(step.selection, extras={**step.selection.extras, **extras}))
