"""What is declared of each format of output: how its sinks are made, and how files without an end are rotated."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from foveate.pipeline.selection import Selection
from foveate.pipeline.sinks.base import Sink


class Part(Sink, Protocol):
    """A Sink of one file, which may be opened again once it is closed: the stream goes on in another file."""

    @property
    def written(self) -> int:
        """Bytes that the file has so far, or will have when it is closed, about."""

    def takes(self, selection: Selection) -> bool:
        """Whether the file can hold this record as well."""


def not_empty(path: Path) -> bool:
    """Whether there is something in a file. Raises OSError."""
    return path.stat().st_size > 0


class Format(NamedTuple):
    """One format of output."""

    part: Callable[[str], Part]  # makes the Sink of one file
    worth_keeping: Callable[[Path], bool] = not_empty  # whether a file found at the start has a record
    size: int | None = None  # most bytes of one file that is rotated
    seconds: float | None = None  # most seconds in one, where no rotation is asked for
    several: Callable[[str], Sink] | None = None  # makes the Sink where one without rotation writes several files

    def sink(self, path: str) -> Sink:
        """The Sink of an output that is not rotated."""
        return (self.several or self.part)(path)
