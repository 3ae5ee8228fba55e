"""What does the pixel work: the interface of the engines, and the choice of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.errors import EngineError
from foveate.pipeline.frames import Frame
from foveate.pipeline.selection import Step
from foveate.pipeline.settings import Settings


class Engine(Protocol):
    """Three stages between Decode and Output. What passes between them is the engine's own, and immutable.

    Each method is a generator over its upstream, run in a thread of its own. ``pyramid`` may rely on the channel
    behind it holding one item, so that a package is read before the one three later is written.
    """

    name: str
    shares_thread: bool  # whether its stages may run in one thread where processors are few

    def upload(self, frames: Iterable[Frame]) -> Iterator[Any]:
        """Yield one package per Frame: what changed."""

    def pyramid(self, updates: Iterable[Any]) -> Iterator[Any]:
        """Yield one package per Update: levels and channels."""

    def cascade(self, states: Iterable[Any]) -> Iterator[Step]:
        """Yield one Step per State: the Selection."""


def open_engine(settings: Settings, feedback: Feedback) -> Engine:
    """The engine that the settings ask for. Raises EngineError where this machine cannot run it."""
    if settings.engine == "cuda":
        raise EngineError("engine 'cuda' is not part of this version; use --engine cpu")
    return CpuEngine(settings, feedback)
