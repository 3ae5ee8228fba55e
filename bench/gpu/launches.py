"""Device time of single launches, and percentiles of times."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from foveate.cuda.driver.device import Device, Stream


def launch_times(
    device: Device, stream: Stream, before: Callable[[], None], launch: Callable[[], None], count: int
) -> list[float]:
    """Milliseconds between two events around each of ``count`` launches, behind the work that ``before`` enqueues.

    So no launch waits for the host.
    """
    times = []
    for _ in range(count):
        start, end = device.event(), device.event()
        before()
        start.record(stream)
        launch()
        end.record(stream)
        end.synchronize()
        times.append(float(end.time_since(start)))
    return times


def torch_times(call: Callable[[], object], warm: int, count: int) -> list[float]:
    """Milliseconds on the device's clock of each of ``count`` calls to torch, one enqueued behind the other."""
    import torch

    for _ in range(warm):
        call()
    torch.cuda.synchronize()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
    for before, after in events:
        before.record()
        call()
        after.record()
    torch.cuda.synchronize()
    return [float(before.elapsed_time(after)) for before, after in events]


def card_name() -> str:
    """The name of the first card."""
    with Device() as device:
        return device.name


def percentiles(times: Sequence[float], unit: str = "_ms") -> dict[str, Any]:
    """The 10th, 50th and 90th percentile of ``times``, and all of them as samples; ``unit`` ends their names."""
    found = {f"p{percent}{unit}": float(np.percentile(times, percent)) for percent in (10, 50, 90)}
    return {**found, f"samples{unit}": list(times)}
