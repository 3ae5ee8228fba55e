"""What each source of ``foveate live`` has done, on standard error when it is over."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from foveate.app.live.watch import Watch
from foveate.app.standard_error import standard_error


def print_live_summary(watches: Sequence[Watch]) -> None:
    """Print counts, latencies and losses of every source."""
    console = Console(file=standard_error(), highlight=False, soft_wrap=True)
    for watch in watches:
        for line in _lines(watch):
            console.print(line)


def _lines(watch: Watch) -> list[Text]:
    tally, status = watch.tally, watch.current()
    slow = [1000 * watch.latencies.percentile(percent) for percent in (50, 99)]
    skipped = f", skipped during pauses {status.skipped}" if status.skipped else ""
    lines = [
        Text.assemble((status.name or f"source {watch.number}", "bold"), f": {status.state}"),
        Text(f"  {tally.frames} frames in {tally.seconds:.1f} s, {tally.fps:.1f} fps; {tally.tokens} tokens"),
        Text(f"  latency from arrival to tokens: p50 {slow[0]:.1f} ms, p99 {slow[1]:.1f} ms"),
        Text(f"  received {status.received}, dropped {status.dropped}{skipped}; connections {status.connections}"),
    ]
    if watch.damaged:
        lines.append(Text(f"  {watch.damaged} pictures or packets could not be decoded", "yellow"))
    return lines
