"""The live line on standard error while a corpus is made."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from foveate.app.standard_error import standard_error


class JobsShown(Protocol):
    """Shows how many jobs are over."""

    def begin(self, jobs: int) -> None:
        """So many are to be done."""

    def advance(self, more: int, failed: int, fps: float) -> None:
        """One is over, and ``more`` have come; so many have failed in all."""


@contextmanager
def jobs_shown(quiet: bool) -> Iterator[JobsShown]:
    """A bar while the context lasts, where there is a terminal to show it on."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield _Unseen()
        return
    figures = TextColumn("[cyan]{task.fields[fps]:.0f}[/] fps  [red]{task.fields[failed]} failed[/]")
    columns = (TextColumn("jobs"), BarColumn(bar_width=24), MofNCompleteColumn(), figures, TimeElapsedColumn())
    console = Console(file=standard_error())
    with Progress(*columns, console=console, refresh_per_second=2, transient=True, redirect_stdout=False) as bar:
        yield _Bar(bar)


class _Unseen:
    def begin(self, jobs: int) -> None:
        pass

    def advance(self, more: int, failed: int, fps: float) -> None:
        pass


class _Bar:
    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._jobs = 0
        self._task = bar.add_task("jobs", total=None, fps=0.0, failed=0)

    def begin(self, jobs: int) -> None:
        self._jobs = jobs
        self._bar.update(self._task, total=jobs, refresh=True)

    def advance(self, more: int, failed: int, fps: float) -> None:
        self._jobs += more
        self._bar.update(self._task, total=self._jobs, advance=1, failed=failed, fps=fps, refresh=True)
