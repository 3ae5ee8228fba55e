"""What the page and programs may ask of a source, whichever process reads it."""

from typing import Any, Protocol

import orjson

from foveate.app.live.latency import Histogram
from foveate.app.web.controls import apply
from foveate.app.web.latest_frames import LatestFrames
from foveate.app.web.picture import message, still

_ARRAYS = orjson.OPT_SERIALIZE_NUMPY


class ShownSource(Protocol):
    """A source on the page. From any thread; only ``status`` and ``latencies`` do not wait."""

    def status(self) -> dict[str, Any]:
        """All figures, as plain data."""

    def latencies(self) -> Histogram:
        """From arrival to tokens, of all frames so far."""

    def records(self, index: int | None) -> tuple[int | None, list[tuple[int, bytes]]]:
        """The index of the latest frame, and index and record of the remembered ones after frame ``index``, as JSON."""

    def message(self, index: int) -> tuple[int, bytes] | None:
        """Index and message (see ``picture.message``) of the latest frame; None if that is frame ``index``, or none."""

    def still(self) -> bytes | None:
        """A small picture of the latest frame, as JPEG."""

    def apply(self, changes: Any) -> None:
        """Change the running source. Raises ValueError, in one line; see ``controls.apply``."""


class LocalSource:
    """One of this process. See ShownSource."""

    def __init__(self, frames: LatestFrames, number: int) -> None:
        self._frames, self._number = frames, number

    def status(self) -> dict[str, Any]:
        """All figures."""
        return self._frames.status(self._number)

    def latencies(self) -> Histogram:
        """From arrival to tokens."""
        return self._frames.latencies()

    def records(self, index: int | None) -> tuple[int | None, list[tuple[int, bytes]]]:
        """See ShownSource."""
        latest = self._frames.latest
        newer = [] if index is None else self._frames.newer_than(index)
        records = [(each.index, orjson.dumps(self._frames.record(each), option=_ARRAYS)) for each in newer]
        return None if latest is None else latest.selection.index, records

    def message(self, index: int) -> tuple[int, bytes] | None:
        """See ShownSource."""
        shown = self._frames.latest
        if shown is None or shown.selection.index == index:
            return None
        return shown.selection.index, message(self._frames, shown)

    def still(self) -> bytes | None:
        """See ShownSource."""
        shown = self._frames.latest
        return None if shown is None else still(shown)

    def apply(self, changes: Any) -> None:
        """See ShownSource."""
        assert self._frames.worker is not None, "there is no worker yet"
        apply(self._frames.worker, changes)
