"""What came of one source: the lines of the summary, and the counts that outlast a process that was killed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rich.console import Console as RichConsole
from rich.text import Text

from foveate.app.live.worker import SourceWorker
from foveate.app.standard_error import standard_error
from foveate.pipeline.live.status import State


@dataclass(frozen=True, slots=True)
class Report:
    """One source so far. Plain data, which passes from process to process."""

    number: int
    name: str  # the address, passwords removed
    state: State = "connecting"
    reason: str = ""  # for the state
    frames: int = 0
    tokens: int = 0
    seconds: float = 0.0  # from the start to the latest frame
    latency_p50: float = 0.0  # seconds, of the latest frames
    latency_p99: float = 0.0
    received: int = 0
    dropped: int = 0
    skipped: int = 0
    damaged: int = 0
    connections: int = 0
    error: str | None = None  # why it failed, or that no picture came, in one line

    def behind(self, earlier: Report) -> Report:
        """With what another process, which was killed, did before."""
        counts = ("frames", "tokens", "seconds", "received", "dropped", "skipped", "damaged", "connections")
        return replace(self, **{name: getattr(earlier, name) + getattr(self, name) for name in counts})

    def never_seen(self) -> str:
        """What is said of a source without a single picture."""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.name}: no picture was received{reason}"


def report_of(worker: SourceWorker) -> Report:
    """What came of a source of this process."""
    tally, status = worker.tally, worker.current()
    return Report(
        worker.number,
        status.name or f"source {worker.number}",
        status.state,
        status.reason,
        tally.frames,
        tally.tokens,
        tally.seconds,
        worker.latencies.percentile(50),
        worker.latencies.percentile(99),
        status.received,
        status.dropped,
        status.skipped,
        worker.damaged,
        status.connections,
        None if worker.error is None else str(worker.error),
    )


def print_summary(reports: Iterable[Report]) -> None:
    """Print counts, latencies and losses of every source."""
    out = RichConsole(file=standard_error(), highlight=False, soft_wrap=True)
    for report in reports:
        for line in _summary_of(report):
            out.print(line)


def _summary_of(report: Report) -> list[Text]:
    fps = report.frames / report.seconds if report.seconds else 0.0
    slow = [1000 * report.latency_p50, 1000 * report.latency_p99]
    skipped = f", skipped {report.skipped}" if report.skipped else ""
    lines = [
        Text.assemble((report.name, "bold"), f": {report.state}"),
        Text(f"  {report.frames} frames in {report.seconds:.1f} s, {fps:.1f} fps; {report.tokens} tokens"),
        Text(f"  latency from arrival to tokens: p50 {slow[0]:.1f} ms, p99 {slow[1]:.1f} ms"),
        Text(f"  received {report.received}, dropped {report.dropped}{skipped}; connections {report.connections}"),
    ]
    if report.damaged:
        lines.append(Text(f"  {report.damaged} pictures or packets could not be decoded", "yellow"))
    return lines
