"""The CPU engine: NumPy and OpenCV. The reference for the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cascade.loaded import load
from foveate.pipeline.chain import Stage
from foveate.pipeline.cpu.cascade import cascade
from foveate.pipeline.cpu.pyramid import State, pyramid
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.cpu.upload import upload
from foveate.pipeline.frames import Colour, Frame, Source
from foveate.pipeline.query.asked import Asked
from foveate.pipeline.query.attributes.colours import tables
from foveate.pipeline.selection import Step
from foveate.pipeline.settings import Settings

_COPIES = 3  # of the levels, where the Cascade reads them in another thread: one written, one in the channel, one read
_FEW = 2  # processors on which one thread for all stages is faster


class CpuEngine:
    """See pipeline.engine.Engine."""

    name = "cpu"

    def __init__(
        self, settings: Settings, feedback: Feedback, asked: Asked | None = None, notes: tuple[str, ...] = ()
    ) -> None:
        self.notes = notes
        self._loaded = load(settings)
        self._asked = asked
        self._settings = settings
        self._feedback = feedback
        self._shares = (os.cpu_count() or 1) <= _FEW
        if settings.attributes:
            tables(Colour())  # here, and not while the first pictures of a camera wait: OpenCV makes tables as well

    def threads(self, source: Source, decode: Stage) -> list[list[Stage]]:
        """Three threads for the three stages, or one where processors are few.

        Stages of many short array operations would fight over the interpreter's lock at each of them, and pass every
        picture from one processor's cache to the other's: together they get through up to a third more frames.
        """
        stages = [Stage("upload", self.upload), Stage("pyramid", self.pyramid), Stage("cascade", self.cascade)]
        return [[decode], stages] if self._shares else [[decode], *([stage] for stage in stages)]

    def upload(self, frames: Iterable[Frame]) -> Iterator[Update]:
        """Frames to Updates."""
        return upload(frames, self._settings.change, self._feedback)

    def pyramid(self, updates: Iterable[Update]) -> Iterator[State]:
        """Updates to States."""
        reads_levels = self._settings.patches or self._settings.allocation.memory == "stream"
        return pyramid(updates, self._settings, _COPIES if reads_levels and not self._shares else 1)

    def cascade(self, states: Iterable[State]) -> Iterator[Step]:
        """States to Steps."""
        return cascade(states, self._settings, self._feedback, self._asked, self._loaded)
