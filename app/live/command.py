"""``foveate live``: reads all sources until the time is over, all have ended, or a signal comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack

from foveate.app.console import Console
from foveate.app.exits import Exit
from foveate.app.inputs import refuse_inputs
from foveate.app.live.arguments import LiveArguments
from foveate.app.live.news import News
from foveate.app.live.summary import print_live_summary
from foveate.app.live.watch import Watch
from foveate.app.signals import Interruption
from foveate.app.unused import unused
from foveate.app.web.gallery import Exhibit
from foveate.app.web.server import WebServer
from foveate.pipeline.errors import SourceError
from foveate.pipeline.live.state import Status
from foveate.pipeline.sinks import Sink, open_overlay, open_sink

_GLANCE = 0.5  # seconds after which the main thread looks around by itself
_FAREWELL = 1.5  # seconds that all sources together get to end
_FINISHING = 10.0  # the same where nobody waits at the keyboard


def live(arguments: LiveArguments, console: Console) -> int:
    """Choose the tokens of every source, and say how the sources fare. Returns the exit code.

    Raises SettingsError, and what the only source raises.
    """
    idle = unused(arguments.settings, arguments.out)
    if idle is not None:
        console.warn(idle)
    ended = threading.Event()
    count = len(arguments.addresses)
    exhibits = [Exhibit() for _ in range(count)] if arguments.web is not None else []
    watches = [_watch(arguments, number, exhibits[number : number + 1], console, ended) for number in range(count)]
    with ExitStack() as stack, Interruption() as interruption:
        try:
            if arguments.web is not None:
                server = stack.enter_context(WebServer(arguments.web, arguments.web_token, exhibits))
                console.say(f"foveate: the page is at {server.address}")
            for watch in watches:
                watch.start()
            _wait(watches, arguments.duration, ended, console)
            end(watches, _FINISHING)
            interruption.check()
        except KeyboardInterrupt:
            end(watches, _FAREWELL)
            console.say(f"interrupted after {sum(watch.tally.frames for watch in watches)} frames")
            return interruption.code
    return _conclude(watches, arguments, console)


def _watch(
    arguments: LiveArguments, number: int, exhibits: Sequence[Exhibit], console: Console, ended: threading.Event
) -> Watch:
    outputs, overlay = arguments.outputs_of(number), arguments.overlay_of(number)
    refuse_inputs([*outputs, *filter(None, [overlay])], arguments.addresses[number], arguments.settings)
    sinks: list[Sink] = [open_sink(name, arguments.rotation) for name in outputs]
    sinks += [*(open_overlay(name, arguments.rotation) for name in filter(None, [overlay])), *exhibits]

    news = News(console.say, quiet=arguments.quiet, alone=len(arguments.addresses) == 1)
    watch = Watch(number, arguments.addresses[number], arguments.settings, sinks, news, ended.set)
    for exhibit in exhibits:
        exhibit.watch = watch
    return watch


def _wait(watches: Sequence[Watch], duration: float | None, ended: threading.Event, console: Console) -> None:
    """Until all have ended, or ``duration`` is over. An error of one of several is told when it happens."""
    deadline = None if duration is None else time.monotonic() + duration
    told: set[int] = set()
    while any(watch.alive for watch in watches):
        left = _GLANCE if deadline is None else min(_GLANCE, deadline - time.monotonic())
        if left <= 0:
            return
        ended.wait(left)
        ended.clear()
        for watch in watches:
            watch.news.catch_up()
            if len(watches) > 1 and watch.error is not None and watch.number not in told:
                told.add(watch.number)
                console.warn(f"source {watch.number} failed: {watch.error}")


def end(watches: Sequence[Watch], patience: float) -> None:
    """Tell all to end, and wait at most ``patience`` seconds for those that have outputs to finish."""
    for watch in watches:
        watch.stop()
    deadline = time.monotonic() + patience
    for watch in watches:
        if watch.stream is not None:  # else it sits in a call that cannot be ended, and has written nothing
            watch.join(deadline - time.monotonic())


def _conclude(watches: Sequence[Watch], arguments: LiveArguments, console: Console) -> int:
    errors = [watch.error for watch in watches if watch.error is not None]
    for watch in watches:
        if watch.error is None and watch.stream is None:
            errors.append(_never_seen(watch.current()))
            if len(watches) > 1:
                console.warn(str(errors[-1]))
    if len(watches) == 1 and errors:
        raise errors[0]
    if not arguments.quiet:
        print_live_summary(watches)
    return Exit.FAILED if errors else Exit.DONE


def _never_seen(status: Status) -> SourceError:
    """The error of a source without a single picture."""
    reason = f" ({status.reason})" if status.reason else ""
    return SourceError(f"{status.name}: no picture was received{reason}")
