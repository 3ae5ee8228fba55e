"""The rows of the progress bar, drawn by rich, which is imported where there is a terminal to draw on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from foveate.app.progress import Follower, SeveralProgress
from foveate.app.standard_error import standard_error
from foveate.app.tally import Tally
from foveate.pipeline.selection import Selection

_INTERVAL = 0.2  # seconds between two redraws: a redraw costs about a millisecond
_FIGURES: Final[Mapping[str, Any]] = {"fps": 0.0, "changed": 0.0, "tokens": 0}


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Follower]:
    """The bar of one video."""
    with _bars(_columns(total)) as bars:
        yield _follower(bars, bars.add_task(title, total=total, **_FIGURES))


@contextmanager
def bars_of_several(videos: int) -> Iterator[SeveralProgress]:
    """The bars of several videos, and of the present one."""
    with _bars([_Columns()]) as bars:
        yield _SeveralBars(bars, videos)


class _SeveralBars:
    """A SeveralProgress of two lines."""

    def __init__(self, bars: Progress, videos: int) -> None:
        self._bars = bars
        self._all = bars.add_task("videos", total=videos, failed=0)
        self._present: TaskID | None = None

    def begin(self, title: str, total: int | None) -> Follower:
        self._present = self._bars.add_task(title, total=total, **_FIGURES)
        return _follower(self._bars, self._present)

    def end(self, failed: int) -> None:
        if self._present is not None:
            self._bars.remove_task(self._present)
            self._present = None
        self._bars.update(self._all, advance=1, failed=failed, refresh=True)


class _Columns(ProgressColumn):
    """The columns of a row; the row of all videos has its own."""

    def __init__(self) -> None:
        super().__init__()
        failed = TextColumn("[red]{task.fields[failed]} failed[/]")
        name = TextColumn("{task.description}", markup=False)
        self._all = [name, BarColumn(bar_width=24), MofNCompleteColumn(), failed, TimeElapsedColumn()]

    def render(self, task: Task) -> RenderableType:
        columns = self._all if "failed" in task.fields else _columns(task.total)
        row = Table.grid(padding=(0, 1))
        row.add_row(*(column(task) for column in columns))
        return row


def _bars(columns: Sequence[ProgressColumn]) -> Progress:
    console = Console(file=standard_error())
    return Progress(*columns, console=console, auto_refresh=False, transient=True, redirect_stdout=False)


def _follower(bars: Progress, task: TaskID) -> Follower:
    due = 0.0

    def follow(selection: Selection, tally: Tally) -> None:
        nonlocal due
        now = time.perf_counter()
        if now < due:
            return
        due = now + _INTERVAL
        bars.update(
            task, completed=tally.frames, fps=tally.fps, changed=selection.changed, tokens=len(selection), refresh=True
        )

    return follow


def _columns(total: float | None) -> list[ProgressColumn]:
    figures = TextColumn(
        "[cyan]{task.fields[fps]:.0f}[/] fps  [magenta]{task.fields[changed]:.0%}[/] changed  "
        "[green]{task.fields[tokens]}[/] tokens"
    )
    name = TextColumn("{task.description}", markup=False)
    if total is None:
        return [name, TextColumn("{task.completed} frames"), figures, TimeElapsedColumn()]
    return [name, BarColumn(bar_width=24), MofNCompleteColumn(), figures, TimeRemainingColumn()]
