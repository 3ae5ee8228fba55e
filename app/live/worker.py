"""One source of ``foveate live``, read by a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from foveate.app.live.latency import Latencies
from foveate.app.live.state_log import StateLog
from foveate.app.tally import Tally
from foveate.pipeline.live.status import Status
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import Sink
from foveate.pipeline.sources.address import shown
from foveate.pipeline.stream import Stream, open_stream

_GLANCE = 0.5  # seconds between checks during a pause whether to stop


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
        self._ended = ended
        self._stop = threading.Event()
        self._running = threading.Event()  # cleared: paused
        self._running.set()
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
        """The present status of the source."""
        live = self.stream.status if self.stream is not None else None
        return live or self.status

    @property
    def damaged(self) -> int:
        """Pictures or packets that could not be decoded."""
        return 0 if self.stream is None else self.stream.damage.frames

    def _run(self) -> None:
        try:
            source = partial(open_stream, self._address, self.settings, expect="live")
            with source(sinks=self._sinks, listener=self._listen) as stream:
                self.stream = stream
                self._read(stream)
        except BaseException as error:  # noqa: BLE001 - the main thread tells it
            self.error = error
        finally:
            self._ended()

    def _read(self, stream: Stream) -> None:
        if self._stop.is_set():
            return
        for selection in stream:
            self._count(selection)
            while not self._running.wait(_GLANCE):
                pass
            if self._stop.is_set():
                return

    def _count(self, selection: Selection) -> None:
        self.tally.add(selection)
        latency = selection.extras.get("latency")
        if latency is not None:
            self.latencies.add(latency)

    def _listen(self, status: Status) -> None:
        self.status = status
        self.log.hear(status)
