"""The Source for cameras and network streams: connects, watches the time limits, and reconnects."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from foveate.pipeline.bounded_queue import END, Cancelled
from foveate.pipeline.errors import FoveateError, SourceError
from foveate.pipeline.frames import Damage, Frame, LiveTimes
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.live.backoff import Backoff
from foveate.pipeline.live.clock import LiveClock
from foveate.pipeline.live.connection import Arrival, Connection, OpenFeed
from foveate.pipeline.live.decoding import LiveDecoding, on_host
from foveate.pipeline.live.feed import LiveFeed, RefusedError
from foveate.pipeline.live.sampling import LiveSampling
from foveate.pipeline.live.status import FrameCounts, Listener, Status, StatusBoard
from foveate.pipeline.live.target import target_of
from foveate.pipeline.settings import LiveSettings, SourceSettings
from foveate.pipeline.sources.cropping import AS_DECODED
from foveate.pipeline.sources.description import Opening, describe
from foveate.pipeline.sources.reading import PictureReader

_GRACE = 0.25  # seconds beyond the time limit in which libav may report the cause itself
_FAREWELL = 0.7  # seconds that a connection gets to close properly


class FiniteError(SourceError):
    """The address leads to a file. Read as a live source, it would lose pictures."""


class LiveSource:
    """Frames of one camera or stream, for as long as they are read.

    Indices count the received pictures, so a gap means dropped ones. Iterated once, and closed by the thread that
    iterates; ``cancel`` and ``status`` are for any thread.
    """

    def __init__(
        self,
        address: str,
        live: LiveSettings,
        source: SourceSettings,
        listener: Listener | None = None,
        decode: LiveDecoding = on_host,
        open_feed: OpenFeed = LiveFeed,
    ) -> None:
        """Connect and wait for the first picture. Raises SourceError where there is none in time."""
        self.damage = Damage()
        self._target = target_of(address, live)
        self._live, self._source = live, source
        self._decode, self._open_feed = decode, open_feed
        self._sampling = LiveSampling(source)
        self._jumped = False  # times or connection, since the last picture that was processed
        self.counts = FrameCounts()
        self._board = StatusBoard(self._target.name, listener)
        self._backoff = Backoff(live.retry_pause)
        self._clock = LiveClock()
        self._reader = PictureReader(self._target.name, AS_DECODED)
        self._cancelled = threading.Event()
        self._fresh = True  # no picture of the present connection was yielded yet
        self._connection: Connection | None = None
        try:
            first = self._first()
            self._frames: Iterator[Frame] = islice(self._all(first), source.frames)
            self.info = self._described(first)
        except BaseException:
            self.close()
            raise

    @property
    def status(self) -> Status:
        """The present status, also while no pictures are taken."""
        status, connection, counts = self._board.status, self._connection, self.counts
        if status.state == "streaming" and connection is not None and not connection.queue.full:
            arrived = counts.arrived or status.since
            if time.monotonic() - arrived > self._live.stall_timeout:
                reason = f"no picture for {self._live.stall_timeout:g} s"
                status = replace(status, state="stalled", reason=reason, since=arrived)
        return replace(
            status,
            received=counts.received,
            dropped=counts.dropped,
            skipped=counts.skipped,
            arrived=counts.arrived,
        )

    def __iter__(self) -> Iterator[Frame]:
        """Yield Frames as they come. Raises SourceError where retrying cannot help, and Cancelled."""
        return self._frames

    def cancel(self) -> None:
        """End every wait, now and later. From any thread, any number of times."""
        self._cancelled.set()
        connection = self._connection
        if connection is not None:
            connection.leave()

    def close(self) -> None:
        """Leave the connection. Safe to call twice; called by the thread that reads."""
        self._frames = iter(())
        connection = self._connection
        if connection is not None:
            connection.leave(_FAREWELL if self.status.state == "streaming" else 0.0)
        self._board.enter("closed")

    def _first(self) -> Arrival:
        """The very first picture."""
        while True:
            self._connect()
            try:
                arrival = self._await()
                if arrival is not None:
                    self._refuse_file()
                    return arrival
                raise SourceError(self._lost())
            except FiniteError:
                raise
            except SourceError as error:
                self._present().leave()
                if not self._live.wait or isinstance(error, RefusedError):
                    self._board.enter("failed", self._plain(str(error)))
                    raise
                self._pause(str(error))

    def _refuse_file(self) -> None:
        """Raise FiniteError where the connection leads to a file, and not to a playlist, which is read to its end."""
        feed = self._present().feed
        if feed is not None and feed.finite and not feed.bursts:
            raise FiniteError(f"{self._target.name}: a file, not a live source; give it to foveate run")

    def _connect(self) -> None:
        self._board.tried()
        self._fresh = True
        connection = Connection(
            self._target,
            self._live,
            self._source,
            self.damage,
            self.counts,
            self._decode,
            self._open_feed,
            self._connection,
        )
        self._connection = connection
        if self._cancelled.is_set():  # before it could be left
            connection.leave()
            raise Cancelled

    def _await(self) -> Arrival | None:
        """The next picture of the present connection, None where it ended. Raises SourceError after the time limit."""
        connection, live = self._present(), self._live
        try:
            item = connection.next(live.connect_timeout + _GRACE) if self._fresh else self._patiently(connection)
        except TimeoutError:
            limit = live.connect_timeout if self._fresh else 2 * live.stall_timeout
            raise SourceError(f"{self._target.name}: no picture within {limit:g} s; check the sender") from None
        if item is END:
            return None
        assert isinstance(item, Arrival)
        return item

    def _patiently(self, connection: Connection) -> object:
        """As ``_await``; says "stalled" meanwhile."""
        try:
            return connection.next(self._live.stall_timeout)
        except TimeoutError:
            self._board.enter("stalled", f"no picture for {self._live.stall_timeout:g} s")
        return connection.next(self._live.stall_timeout + _GRACE)

    def _all(self, first: Arrival) -> Iterator[Frame]:
        arrival: Arrival | None = first
        while True:
            while arrival is not None:
                frame = self._frame(arrival)
                if frame is not None:
                    yield frame
                arrival = self._next()
            if self._finished():
                return
            self._pause(self._lost())
            arrival = self._again()

    def _next(self) -> Arrival | None:
        try:
            return self._await()
        except SourceError as error:
            self._present().error = error
            return None

    def _again(self) -> Arrival | None:
        """Reconnect; the first picture, or None where that failed."""
        self._connect()
        return self._next()

    def _lost(self) -> str:
        """Leave a connection that ended; returns why it did. Raises errors that retrying cannot help."""
        connection = self._present()
        connection.leave()
        self._backoff.ended(connection.lasted)
        error = connection.error
        if isinstance(error, RefusedError) or (error is not None and not isinstance(error, FoveateError)):
            self._board.enter("failed", self._plain(connection.reason))
            raise error
        return f"{self._target.name}: {self._plain(connection.reason)}"

    def _finished(self) -> bool:
        feed = self._present().feed
        return feed is not None and feed.finished

    def _pause(self, reason: str) -> None:
        """Wait before the next attempt. Raises Cancelled."""
        pause = self._backoff.pause()
        self._board.enter("reconnecting", self._plain(reason))
        if self._cancelled.wait(pause):
            raise Cancelled

    def _plain(self, reason: str) -> str:
        """The reason without the source's name, which the status has already."""
        return reason.removeprefix(f"{self._target.name}: ")

    def _present(self) -> Connection:
        assert self._connection is not None, "the source is closed"
        return self._connection

    def _frame(self, arrival: Arrival) -> Frame | None:
        """The picture as a Frame; None if sampling leaves it out."""
        again = self._fresh and self._board.status.connections > 0
        if self._fresh:
            self._fresh, self._present().sample = False, None
            self._clock.reconnected()
            self._board.connected()
        self._board.enter("streaming")
        placed = self._clock.place(arrival.stamp, arrival.arrived)
        self._jumped |= placed.jumped or again
        if not self._sampling.take(arrival.number, placed.time):
            arrival.picture.pass_over(self._reader)
            return None
        jumped, self._jumped = self._jumped, False
        times = LiveTimes(placed.captured, arrival.arrived)
        return arrival.picture.frame(self._reader, arrival.number, placed.time, jumped, times)

    def _described(self, first: Arrival) -> SourceInfo:
        feed, sample = self._present().feed, self._present().sample
        assert feed is not None, "a picture came without a connection"
        assert sample is not None, "the first picture of a connection has none"
        opening = Opening(sample, self._reader.read(sample), 0.0, False)
        info = describe(feed, opening, self._source, self._target.name)
        return replace(
            info,
            frames=self._source.frames,
            times="stream" if feed.stamped else "arrival",
            decoded_on_cpu=first.picture.decoded_on_cpu,
        )
