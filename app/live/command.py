"""``foveate live``: reads all sources until the duration is over, all have ended, or a signal comes."""

import threading
import time
from contextlib import ExitStack

from foveate.app.console import Console
from foveate.app.live.arguments import LiveArguments
from foveate.app.live.group import FAREWELL, Group, SourceGroup, sinks_of
from foveate.app.live.processes import ProcessGroup
from foveate.app.live.report import print_summary
from foveate.app.signals import Interruption
from foveate.app.standard_output import NOTHING_KEPT
from foveate.app.unused import unused
from foveate.app.web.server import WebServer
from foveate.pipeline.exits import Exit

_GLANCE = 0.5  # seconds between checks of the main thread
_FINISHING = 10.0  # seconds that all sources together get to end where the end was planned


def live(arguments: LiveArguments, console: Console) -> int:
    """Choose the tokens of every source, and report the states of the sources. Returns the exit code.

    Raises SettingsError, and what the only source raises.
    """
    idle = unused(arguments.settings, arguments.out)
    if idle is not None:
        console.warn(idle)
    if not (arguments.out or arguments.overlay or arguments.web):
        console.warn(NOTHING_KEPT)
    ended = threading.Event()
    group = _group(arguments, console, ended)
    with ExitStack() as stack, Interruption() as interruption:
        try:
            if arguments.web is not None:
                server = stack.enter_context(WebServer(arguments.web, arguments.web_token, group.shown))
                console.say(f"foveate: the page is at {server.address}")
            group.start()
            _wait(group, arguments.duration, ended)
            group.end(_FINISHING)
            interruption.check()
        except KeyboardInterrupt:
            group.end(FAREWELL)
            tell_failures(group, console)
            reports = group.reports()
            console.say(f"interrupted after {sum(report.frames for report in reports)} frames")
            if not arguments.quiet:
                print_summary(reports)
            return interruption.code
    return _conclude(group, arguments, console)


def _group(arguments: LiveArguments, console: Console, ended: threading.Event) -> Group:
    if arguments.processes == 1:
        return SourceGroup(arguments, range(len(arguments.addresses)), console, ended.set)
    for number in range(len(arguments.addresses)):
        sinks_of(arguments, number)  # what is wrong with them is told before anything begins
    return ProcessGroup(arguments, console, ended.set)


def _wait(group: Group, duration: float | None, ended: threading.Event) -> None:
    """Until all have ended, or ``duration`` is over."""
    deadline = None if duration is None else time.monotonic() + duration
    while group.alive:
        left = _GLANCE if deadline is None else min(_GLANCE, deadline - time.monotonic())
        if left <= 0:
            return
        ended.wait(left)
        ended.clear()
        group.check()
    group.check()


def tell_failures(group: Group, console: Console) -> None:
    """Say what went wrong at the end, such as an output that could not be completed."""
    group.check()
    reports = group.reports()
    if len(reports) == 1 and reports[0].error is not None:  # of several, ``check`` has said it
        console.warn(reports[0].error)


def _conclude(group: Group, arguments: LiveArguments, console: Console) -> int:
    group.conclude()
    reports = group.reports()
    failed = any(report.error is not None for report in reports)
    for report in reports:
        if report.error is None and not report.received:
            console.warn(report.never_seen())
            failed = True
    if not arguments.quiet:
        print_summary(reports)
    return Exit.FAILED if failed else Exit.DONE
