"""What the page shows of a source that another process reads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from foveate.app.live.latency import Histogram
from foveate.app.live.messages import SILENT

if TYPE_CHECKING:
    from foveate.app.live.processes import SourceProcess

_COUNTS: Final = {name: name for name in ("received", "dropped", "skipped", "damaged", "connections", "tokens")} | {
    "records": "frames"
}
"""Counts of a status, and what a Report calls them."""


class RemoteSource:
    """One of another process. See web.shown.ShownSource.

    Counts go on where a process was killed and another one has taken its place.
    """

    def __init__(self, process: SourceProcess, number: int) -> None:
        self._process, self._number = process, number
        self._place = process.numbers.index(number)

    def status(self) -> dict[str, Any]:
        """All figures, as they were half a second ago at most while the process runs."""
        known = self._process.known
        earlier, figures = known.earlier.get(self._number), known.figures
        status = dict(figures.statuses[self._place][0]) if figures else self._unheard()
        for name, theirs in _COUNTS.items():
            status[name] += 0 if earlier is None else getattr(earlier, theirs)
        if figures is not None:
            self._go_on(status, time.monotonic() - known.at)
        return status

    def latencies(self) -> Histogram:
        """From arrival to tokens, of all frames so far."""
        known = self._process.known
        latest = known.figures.statuses[self._place][1] if known.figures else Histogram.empty()
        return latest.plus(known.latencies.get(self._number, Histogram.empty()))

    def records(self, index: int | None) -> tuple[int | None, list[tuple[int, bytes]]]:
        """See ShownSource; nothing where the process does not answer."""
        return self._asked("records", index) or (index, [])

    def message(self, index: int) -> tuple[int, bytes] | None:
        """See ShownSource; None where the process does not answer."""
        made: tuple[int, bytes] | None = self._asked("message", index)
        return made

    def still(self) -> bytes | None:
        """See ShownSource; None where the process does not answer."""
        made: bytes | None = self._asked("still")
        return made

    def apply(self, changes: Any) -> None:
        """See ShownSource. Raises ValueError also where the process does not answer."""
        self._process.ask(self._number, "apply", changes)

    def _asked(self, method: str, *arguments: Any) -> Any:
        try:
            return self._process.ask(self._number, method, *arguments)
        except ValueError:
            return None

    def _unheard(self) -> dict[str, Any]:
        """Of a source whose process has not reported yet."""
        report, settings = self._process.reports()[self._place], self._process.settings
        return {
            "number": self._number,
            "name": report.name,
            "state": report.state,
            "reason": report.error or report.reason,
            **dict.fromkeys(("for", "age", "changed", "debt", "gaze"), None),
            **dict.fromkeys(_COUNTS, 0),
            **dict.fromkeys(("fps", "tokens_per_second", "latency_p50", "latency_p99"), 0.0),
            "paused": False,
            "encoder": settings.encoder,
            "query": settings.query,
            "query_notes": (),
            "budget": settings.rate,
            "keyframe_interval": settings.change.keyframe_interval,
        }

    @staticmethod
    def _go_on(status: dict[str, Any], since: float) -> None:
        """Advances times while the process reports nothing."""
        for name in ("for", "age"):
            if status[name] is not None:
                status[name] = round(status[name] + since, 3)
        if since > SILENT and status["state"] == "streaming":
            status |= {"state": "stalled", "reason": "its process does not answer", "fps": 0.0}
