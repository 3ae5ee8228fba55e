"""The live line on standard error while a run goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from foveate.app.standard_error import standard_error
from foveate.app.tally import Tally
from foveate.pipeline.selection import Selection

_INTERVAL = 0.2  # seconds between two redraws: a redraw costs about a millisecond


class Follower(Protocol):
    """Is shown every Selection."""

    def __call__(self, selection: Selection, tally: Tally) -> None:
        """Show, or let pass, the latest ``selection``; ``tally`` includes it."""


@contextmanager
def progress(title: str, total: int | None, shown: bool) -> Iterator[Follower]:
    """A bar while the context lasts, gone afterwards. ``total`` frames, None if unknown; nothing unless ``shown``."""
    if not shown:
        yield lambda selection, tally: None
        return
    console = Console(file=standard_error())
    bar = Progress(*_columns(total), console=console, auto_refresh=False, transient=True, redirect_stdout=False)
    task = bar.add_task(title, total=total, fps=0.0, changed=0.0, tokens=0)
    due = 0.0

    def follow(selection: Selection, tally: Tally) -> None:
        nonlocal due
        now = time.perf_counter()
        if now < due:
            return
        due = now + _INTERVAL
        bar.update(
            task, completed=tally.frames, fps=tally.fps, changed=selection.changed, tokens=len(selection), refresh=True
        )

    with bar:
        yield follow


def _columns(total: int | None) -> list[ProgressColumn]:
    figures = TextColumn(
        "[cyan]{task.fields[fps]:.0f}[/] fps  [magenta]{task.fields[changed]:.0%}[/] changed  "
        "[green]{task.fields[tokens]}[/] tokens"
    )
    name = TextColumn("{task.description}", markup=False)
    if total is None:
        return [name, TextColumn("{task.completed} frames"), figures, TimeElapsedColumn()]
    return [name, BarColumn(bar_width=24), MofNCompleteColumn(), figures, TimeRemainingColumn()]
