"""Counts of a run so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection


@dataclass(slots=True)
class Tally:
    """Counts over all Selections of one run."""

    frames: int = 0
    keyframes: int = 0
    tokens: int = 0
    changed: float = 0.0  # sum over frames of the share of tiles
    recomputed: float = 0.0  # sum over frames of the share of cells
    began: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0  # up to the latest Selection

    def add(self, selection: Selection) -> None:
        """Count one Selection."""
        self.frames += 1
        self.keyframes += selection.keyframe is not None
        self.tokens += len(selection)
        self.changed += selection.changed
        self.recomputed += selection.recomputed
        self.seconds = time.perf_counter() - self.began

    def include(self, other: Tally) -> None:
        """Add the counts of another run; the time still starts with this one."""
        self.frames += other.frames
        self.keyframes += other.keyframes
        self.tokens += other.tokens
        self.changed += other.changed
        self.recomputed += other.recomputed

    def mean(self, total: float) -> float:
        """``total`` per frame; 0.0 before the first."""
        return total / self.frames if self.frames else 0.0

    @property
    def fps(self) -> float:
        """Frames per second from the start to the latest frame; 0.0 before the first."""
        return self.frames / self.seconds if self.seconds else 0.0


class TallySink:
    """The last sink of a stream: its tally counts what all sinks before it hold, and no frame more or less."""

    needs_patches = needs_heat = needs_query = False

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def open(self, header: Header) -> None:
        """See Sink."""

    def write(self, frame: FrameView, selection: Selection) -> None:
        """See Sink."""
        self._tally.add(selection)

    def close(self) -> None:
        """See Sink."""
