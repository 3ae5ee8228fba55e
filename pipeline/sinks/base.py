"""The interface of sinks."""

from typing import Protocol, runtime_checkable

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection


@runtime_checkable
class Sink(Protocol):
    """Takes the Selections of one stream, in order, from one thread.

    >>> class Counting:
    ...     needs_patches = needs_heat = needs_query = False
    ...     tokens = 0
    ...     def open(self, header): pass
    ...     def write(self, frame, selection): self.tokens += len(selection)
    ...     def close(self): pass
    >>> counting = Counting()
    >>> with open_stream("clip.mp4", sinks=[counting], source={"frames": 3}) as stream:
    ...     tokens = sum(len(selection) for selection in stream)
    >>> counting.tokens == tokens
    True
    """

    needs_patches: bool  # the Selections must hold their patches
    needs_heat: bool  # the Selections must hold their score map
    needs_query: bool  # the Selections must hold the map of relevance to the query, where there is one

    def open(self, header: Header) -> None:
        """Write what comes before the first record. Raises SinkError."""

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Write one record. ``frame`` is the picture that ``selection`` was chosen from. Raises SinkError."""

    def close(self) -> None:
        """Finish the file. Called once, also after an error or an interruption: what was written stays valid."""
