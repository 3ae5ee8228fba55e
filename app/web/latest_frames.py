"""The latest frames of each source, for the web page. Written by the pipeline, read by any number of clients.

Nobody waits: a client asks for what is newer than what it has, and misses what it is too slow for.
"""

import time
from collections import deque
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from foveate.app.live.latency import Histogram
from foveate.app.live.worker import SourceWorker
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.json_lines import record_of
from foveate.pipeline.sinks.overlay.layout import Image
from foveate.pipeline.sinks.overlay.reader import ReaderView

_REMEMBERED = 64  # records that a client may lag behind
_SPAN = 5.0  # seconds over which rates are taken


class Shown(NamedTuple):
    """A frame and its tokens, as shown."""

    frame: FrameView
    selection: Selection
    seen: Image | None  # the reader's picture with stream memory; None where the tokens alone make it


class _Mark(NamedTuple):
    at: float  # seconds by time.monotonic()
    tokens: int


class LatestFrames:
    """The latest frames of one source; a Sink for its stream."""

    needs_patches = True
    needs_heat = True
    needs_query = False

    def __init__(self) -> None:
        self._reader: ReaderView | None = None
        self.latest: Shown | None = None
        self.worker: SourceWorker | None = None  # set before the source is opened
        self._size = (0, 0)
        self._records: deque[Selection] = deque(maxlen=_REMEMBERED)
        self._marks: deque[_Mark] = deque(maxlen=1000)

    def open(self, header: Header) -> None:
        """Note the size, and whether the reader remembers."""
        self._size = header.width, header.height
        reader = ReaderView(header)
        self._reader = reader if reader.remembers else None

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Take the newest frame."""
        self._records.append(replace(selection, patches=None))
        self._marks.append(_Mark(time.monotonic(), len(selection)))
        # Only the latest frame keeps its patches: those of all remembered records would take megabytes.
        self.latest = Shown(frame, selection, self._reader.follow(selection) if self._reader else None)

    def close(self) -> None:
        """Nothing to close."""

    def record(self, selection: Selection) -> dict[str, Any]:
        """The selection as a JSON-lines record; for orjson with OPT_SERIALIZE_NUMPY."""
        return record_of(selection, self._size)

    def newer_than(self, index: int) -> list[Selection]:
        """The remembered selections after frame ``index``."""
        return [selection for selection in self._records.copy() if selection.index > index]

    def rates(self) -> tuple[float, float]:
        """Frames and tokens per second over the last seconds; 0.0 where nothing came."""
        now = time.monotonic()
        recent = [mark for mark in self._marks.copy() if now - mark.at <= _SPAN]
        span = sum(after.at - before.at for before, after in pairwise(recent))
        if span <= 0:
            return 0.0, 0.0
        return (len(recent) - 1) / span, sum(mark.tokens for mark in recent[1:]) / span

    def latencies(self) -> Histogram:
        """From arrival to tokens, of all frames so far."""
        return self._its_worker().latencies.histogram()

    def _its_worker(self) -> SourceWorker:
        assert self.worker is not None, "there is no worker yet"
        return self.worker

    def status(self, number: int) -> dict[str, Any]:
        """All figures of the page, as plain data. Latencies in seconds."""
        worker = self._its_worker()
        status, (fps, tokens), latest = worker.current(), self.rates(), self.latest
        age = None if status.arrived is None else time.monotonic() - status.arrived
        settings = worker.settings
        return {
            "number": number,
            "name": status.name,
            "state": status.state,
            "reason": status.reason,
            "for": round(time.monotonic() - status.since, 1) if status.since else None,
            "age": None if age is None else round(age, 3),
            "received": status.received,
            "dropped": status.dropped,
            "skipped": status.skipped,
            "damaged": worker.damaged,
            "connections": status.connections,
            "records": worker.tally.frames,
            "tokens": worker.tally.tokens,
            "fps": round(fps, 2),
            "tokens_per_second": round(tokens, 1),
            "changed": round(latest.selection.changed, 4) if latest is not None else None,
            "latency_p50": round(worker.latencies.percentile(50), 5),
            "latency_p99": round(worker.latencies.percentile(99), 5),
            "paused": worker.paused,
            "encoder": settings.encoder,
            "query": worker.changed.get("query", settings.query),
            "query_notes": worker.stream.query_notes if worker.stream is not None else (),
            "budget": worker.changed.get("budget", settings.rate),
            "debt": latest.selection.extras.get("debt") if latest is not None else None,
            "keyframe_interval": worker.changed.get("keyframe_interval", settings.change.keyframe_interval),
            "gaze": worker.changed.get("gaze"),
        }
