"""One source of ``foveate live``, read by a thread of its own."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from foveate.app.live.latency import Latencies
from foveate.app.live.state_log import StateLog
from foveate.app.tally import Tally
from foveate.pipeline.errors import first_line
from foveate.pipeline.frames import FrameView
from foveate.pipeline.live.status import Status
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import Sink
from foveate.pipeline.sources.address import shown
from foveate.pipeline.stream import Stream, open_stream


class _Progress:
    """The last sink of a source: counts its frames, and holds them up during a pause."""

    needs_patches = needs_heat = needs_query = False

    def __init__(self, tally: Tally, latencies: Latencies, running: threading.Event) -> None:
        self._tally, self._latencies, self._running = tally, latencies, running

    def open(self, header: Header) -> None:
        """Nothing to open."""

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Count one frame; wait while ``running`` is cleared."""
        self._tally.add(selection)
        latency = selection.extras.get("latency")
        if latency is not None:
            self._latencies.add(latency)
        self._running.wait()

    def close(self) -> None:
        """Nothing to close."""


class SourceWorker:
    """Reads one source until it ends, fails, or is stopped."""

    def __init__(
        self,
        number: int,
        address: str,
        settings: Settings,
        sinks: Sequence[Sink],
        log: StateLog,
        ended: Callable[[], None],
    ) -> None:
        self.number = number
        self.log = log
        self.tally = Tally()
        self.latencies = Latencies()
        self.error: BaseException | None = None
        self.stream: Stream | None = None
        self.settings = settings
        self.changed: dict[str, Any] = {}  # settings changed since the start, by name
        self.status = Status(shown(address))
        self._address, self._sinks = address, sinks
        self._stop = threading.Event()
        self._running = threading.Event()  # cleared: paused
        self._running.set()
        self._progress = _Progress(self.tally, self.latencies, self._running)
        self._ended = ended
        self._thread = threading.Thread(target=self._run, name=f"foveate-worker-{number}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    @property
    def paused(self) -> bool:
        """Whether it waits for ``resume``."""
        return not self._running.is_set()

    def pause(self) -> None:
        """Take no frames until ``resume``; what arrives is skipped, or with the policy ``every`` waits."""
        self._running.clear()
        if self.stream is not None:
            self.stream.set_paused(True)

    def resume(self) -> None:
        """Take frames again."""
        if self.stream is not None:
            self.stream.set_paused(False)
        self._running.set()

    def stop(self) -> None:
        """Tell it to stop, without waiting."""
        self._stop.set()
        self._running.set()
        if self.stream is not None:
            self.stream.cancel()

    def join(self, seconds: float) -> None:
        """Wait until it has ended, but not longer than ``seconds``."""
        self._thread.join(max(0.0, seconds))

    def current(self) -> Status:
        """The present status of the source; failed as well where one of its outputs could not be written."""
        live = self.stream.status if self.stream is not None else None
        status = live or self.status
        if self.error is not None and status.state != "failed":
            return replace(status, state="failed", reason=first_line(self.error))
        return status

    @property
    def damaged(self) -> int:
        """Pictures or packets that could not be decoded."""
        return 0 if self.stream is None else self.stream.damage.frames

    def _run(self) -> None:
        try:
            source = partial(open_stream, self._address, self.settings, expect="live")
            with source(sinks=[*self._sinks, self._progress], listener=self._listen) as stream:
                self.stream = stream
                if not self._stop.is_set():
                    stream.drain()
        except BaseException as error:  # noqa: BLE001 - the main thread tells it
            self.error = error
        finally:
            self._ended()

    def _listen(self, status: Status) -> None:
        self.status = status
        self.log.hear(status)
