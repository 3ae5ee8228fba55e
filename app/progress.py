"""The progress bar on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from foveate.app.tally import Tally
from foveate.pipeline.selection import Selection


class Follower(Protocol):
    """Called with every Selection."""

    def __call__(self, selection: Selection, tally: Tally) -> None:
        """Show ``selection``, unless it is too soon after the last redraw; ``tally`` includes it, and may be ahead."""


class SeveralProgress(Protocol):
    """Shows the progress of several videos, one after the other."""

    def begin(self, title: str, total: int | None) -> Follower:
        """Show the next video, of ``total`` frames (None: unknown). Returns what to call with its Selections."""

    def end(self, failed: int) -> None:
        """One more video has ended; ``failed`` is how many have failed so far."""


@contextmanager
def progress(title: str, total: int | None, shown: bool) -> Iterator[Follower]:
    """A bar while the context lasts. ``total`` frames, None if unknown; nothing unless ``shown``."""
    if not shown:
        yield _unseen
        return
    from foveate.app.progress_bars import bar

    with bar(title, total) as follow:
        yield follow


@contextmanager
def progress_of_several(videos: int, shown: bool) -> Iterator[SeveralProgress]:
    """A bar for so many videos, and below it one for the present video, while the context lasts."""
    if not shown:
        yield _Unseen()
        return
    from foveate.app.progress_bars import bars_of_several

    with bars_of_several(videos) as bars:
        yield bars


class _Unseen:
    """A SeveralProgress that shows nothing."""

    def begin(self, title: str, total: int | None) -> Follower:
        return _unseen

    def end(self, failed: int) -> None:
        pass


def _unseen(selection: Selection, tally: Tally) -> None:
    pass
