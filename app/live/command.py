"""``foveate live``: reads all sources until the duration is over, all have ended, or a signal comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack

from rich.console import Console as RichConsole
from rich.text import Text

from foveate.app.console import Console
from foveate.app.inputs import refuse_inputs
from foveate.app.live.arguments import LiveArguments
from foveate.app.live.state_log import StateLog
from foveate.app.live.worker import SourceWorker
from foveate.app.signals import Interruption
from foveate.app.standard_error import standard_error
from foveate.app.unused import unused
from foveate.app.web.latest_frames import LatestFrames
from foveate.app.web.server import WebServer
from foveate.pipeline.errors import SourceError
from foveate.pipeline.exits import Exit
from foveate.pipeline.live.status import Status
from foveate.pipeline.sinks import Sink, open_overlay, open_sink

_GLANCE = 0.5  # seconds between checks of the main thread
_FAREWELL = 1.5  # seconds that all sources together get to end
_FINISHING = 10.0  # the same where the end was planned


def live(arguments: LiveArguments, console: Console) -> int:
    """Choose the tokens of every source, and report the states of the sources. Returns the exit code.

    Raises SettingsError, and what the only source raises.
    """
    idle = unused(arguments.settings, arguments.out)
    if idle is not None:
        console.warn(idle)
    ended = threading.Event()
    count = len(arguments.addresses)
    sources = [LatestFrames() for _ in range(count)] if arguments.web is not None else []
    workers = [_worker(arguments, number, sources[number : number + 1], console, ended) for number in range(count)]
    with ExitStack() as stack, Interruption() as interruption:
        try:
            if arguments.web is not None:
                server = stack.enter_context(WebServer(arguments.web, arguments.web_token, sources))
                console.say(f"foveate: the page is at {server.address}")
            for worker in workers:
                worker.start()
            _wait(workers, arguments.duration, ended, console)
            end(workers, _FINISHING)
            interruption.check()
        except KeyboardInterrupt:
            end(workers, _FAREWELL)
            console.say(f"interrupted after {sum(worker.tally.frames for worker in workers)} frames")
            return interruption.code
    return _conclude(workers, arguments, console)


def _worker(
    arguments: LiveArguments, number: int, latest: Sequence[LatestFrames], console: Console, ended: threading.Event
) -> SourceWorker:
    outputs, overlay = arguments.outputs_of(number), arguments.overlay_of(number)
    refuse_inputs([*outputs, *filter(None, [overlay])], [arguments.addresses[number]], arguments.settings)
    sinks: list[Sink] = [open_sink(name, arguments.rotation) for name in outputs]
    sinks += [*(open_overlay(name, arguments.rotation) for name in filter(None, [overlay])), *latest]

    log = StateLog(console.say, quiet=arguments.quiet, alone=len(arguments.addresses) == 1)
    worker = SourceWorker(number, arguments.addresses[number], arguments.settings, sinks, log, ended.set)
    for frames in latest:
        frames.worker = worker
    return worker


def _wait(workers: Sequence[SourceWorker], duration: float | None, ended: threading.Event, console: Console) -> None:
    """Until all have ended, or ``duration`` is over. An error of one of several is printed when it happens."""
    deadline = None if duration is None else time.monotonic() + duration
    told: set[int] = set()
    while any(worker.alive for worker in workers):
        left = _GLANCE if deadline is None else min(_GLANCE, deadline - time.monotonic())
        if left <= 0:
            return
        ended.wait(left)
        ended.clear()
        for worker in workers:
            worker.log.flush()
            if len(workers) > 1 and worker.error is not None and worker.number not in told:
                told.add(worker.number)
                console.warn(f"source {worker.number} failed: {worker.error}")


def end(workers: Sequence[SourceWorker], patience: float) -> None:
    """Tell all to end, and wait at most ``patience`` seconds for those that have outputs to finish."""
    for worker in workers:
        worker.stop()
    deadline = time.monotonic() + patience
    for worker in workers:
        if worker.stream is not None:  # else it is still connecting, and has written nothing
            worker.join(deadline - time.monotonic())


def _conclude(workers: Sequence[SourceWorker], arguments: LiveArguments, console: Console) -> int:
    errors = [worker.error for worker in workers if worker.error is not None]
    for worker in workers:
        if worker.error is None and worker.stream is None:
            errors.append(_never_seen(worker.current()))
            if len(workers) > 1:
                console.warn(str(errors[-1]))
    if len(workers) == 1 and errors:
        raise errors[0]
    if not arguments.quiet:
        _print_summary(workers)
    return Exit.FAILED if errors else Exit.DONE


def _never_seen(status: Status) -> SourceError:
    """The error of a source without a single picture."""
    reason = f" ({status.reason})" if status.reason else ""
    return SourceError(f"{status.name}: no picture was received{reason}")


def _print_summary(workers: Sequence[SourceWorker]) -> None:
    """Print counts, latencies and losses of every source."""
    out = RichConsole(file=standard_error(), highlight=False, soft_wrap=True)
    for worker in workers:
        for line in _summary_of(worker):
            out.print(line)


def _summary_of(worker: SourceWorker) -> list[Text]:
    tally, status = worker.tally, worker.current()
    slow = [1000 * worker.latencies.percentile(percent) for percent in (50, 99)]
    skipped = f", skipped during pauses {status.skipped}" if status.skipped else ""
    lines = [
        Text.assemble((status.name or f"source {worker.number}", "bold"), f": {status.state}"),
        Text(f"  {tally.frames} frames in {tally.seconds:.1f} s, {tally.fps:.1f} fps; {tally.tokens} tokens"),
        Text(f"  latency from arrival to tokens: p50 {slow[0]:.1f} ms, p99 {slow[1]:.1f} ms"),
        Text(f"  received {status.received}, dropped {status.dropped}{skipped}; connections {status.connections}"),
    ]
    if worker.damaged:
        lines.append(Text(f"  {worker.damaged} pictures or packets could not be decoded", "yellow"))
    return lines
