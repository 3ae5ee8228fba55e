"""Device time of single launches."""

from __future__ import annotations

from collections.abc import Callable

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
