"""What the main process of ``foveate live`` and those that read sources tell each other, by pickle over a pipe."""

from dataclasses import dataclass
from typing import Any, Final

from foveate.app.live.arguments import LiveArguments
from foveate.app.live.latency import Histogram
from foveate.app.live.report import Report

BEAT: Final = 0.5  # seconds between the Figures of a process
SILENT: Final = 5.0  # seconds without Figures, after which a process counts as stalled


@dataclass(frozen=True, slots=True)
class Job:
    """The first message to a process."""

    arguments: LiveArguments
    numbers: tuple[int, ...]  # of its sources


@dataclass(frozen=True, slots=True)
class End:
    """To a process: end all sources."""

    patience: float  # seconds that those with outputs get to finish


@dataclass(frozen=True, slots=True)
class Ask:
    """To a process: call a method of what is shown of a source, and send an Answer."""

    key: int
    number: int  # of the source
    method: str  # of web.shown.ShownSource
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """From a process."""

    key: int
    value: Any = None
    refusal: str | None = None  # the text of a ValueError


@dataclass(frozen=True, slots=True)
class Figures:
    """From a process, every BEAT and at its end: how its sources fare, in the order of their numbers."""

    reports: tuple[Report, ...]
    statuses: tuple[tuple[dict[str, Any], Histogram], ...]  # without a page none
