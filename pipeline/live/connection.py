"""One connection to a live source: opened, decoded and closed by a thread of its own.

A call into libav cannot be interrupted before its time limit. So nothing waits for that thread: the reader waits at a
queue, and the thread of an abandoned connection ends when its call returns.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple

from av.video.frame import VideoFrame

from foveate.pipeline.bounded_queue import BoundedQueue, Cancelled
from foveate.pipeline.errors import FoveateError
from foveate.pipeline.frames import Damage
from foveate.pipeline.live.backlog import Backlog
from foveate.pipeline.live.decoding import LiveDecoding, LivePicture
from foveate.pipeline.live.feed import LiveFeed
from foveate.pipeline.live.hls import Duplicates, Pacer
from foveate.pipeline.live.opening import CONNECTED, PICTURE, reached
from foveate.pipeline.live.status import FrameCounts
from foveate.pipeline.live.target import Target
from foveate.pipeline.settings import LiveSettings, SourceSettings

_EVERY_DEPTH = 8  # pictures that wait where none is to be dropped

OpenFeed = Callable[[Target, LiveSettings, SourceSettings], LiveFeed]
"""Connects. Raises SourceError."""


class Arrival(NamedTuple):
    """A decoded picture, and when it came."""

    picture: LivePicture
    number: int  # of this source, from 0; a gap means dropped pictures
    stamp: float | None  # the sender's timestamp, in seconds
    arrived: float  # seconds by time.monotonic()


class Connection:
    """Starts to connect at once. ``queue`` carries Arrivals, and ends when the connection does."""

    def __init__(
        self,
        target: Target,
        live: LiveSettings,
        source: SourceSettings,
        damage: Damage,
        counts: FrameCounts,
        decode: LiveDecoding,
        open_feed: OpenFeed,
        earlier: Connection | None = None,
    ) -> None:
        """``earlier``: the connection before. Pictures of HLS that it brought are not brought again."""
        self.queue = Backlog(counts) if live.policy == "latest" else BoundedQueue(_EVERY_DEPTH)
        self.feed: LiveFeed | None = None  # set before the first Arrival
        self.sample: VideoFrame | None = None  # the same; see LivePicture
        self.error: Exception | None = None  # why it could not be opened or decoded; set before the queue ends
        self._counts = counts
        self._began: float | None = None  # when its first picture came, seconds by time.monotonic()
        self._latest = 0.0  # the same of its latest picture
        self._passed = 0  # of feed.passed, what is counted
        self._duplicates: Duplicates = Duplicates(None if earlier is None else earlier._duplicates)
        self._left = False
        self._opening, self._name = (target, live, source), target.name
        self._decoding, self._open_feed = decode, open_feed
        self._damage = damage
        self._thread = threading.Thread(target=self._run, name="foveate-connection", daemon=True)
        self._thread.start()

    @property
    def lasted(self) -> float:
        """Seconds from its first picture to the latest one."""
        return 0.0 if self._began is None else self._latest - self._began

    @property
    def reason(self) -> str:
        """Why it ended, in one line."""
        if self.error is not None:
            return str(self.error) if isinstance(self.error, FoveateError) else type(self.error).__name__
        ending = self.feed.ending if self.feed is not None else None
        return ending or "no picture could be decoded"

    def leave(self, patience: float = 0.0) -> None:
        """Take no more pictures. Waits at most ``patience`` seconds for the thread to end. From any thread."""
        self._left = True
        self.queue.cancel()
        self._thread.join(patience)

    def _run(self) -> None:
        try:
            with closing(self._open_feed(*self._opening)) as feed:
                self.feed = feed
                reached(self._name, CONNECTED)
                with closing(self._decoding(feed, self._damage)) as pictures:
                    self._take(feed, pictures)
        except Cancelled:
            pass
        except Exception as error:  # noqa: BLE001 - it goes to the thread that reads the queue
            self.error = error
        finally:
            release_freed_memory()
            self.queue.close()

    def _take(self, feed: LiveFeed, pictures: Iterable[LivePicture]) -> None:
        tick, pacer = float(feed.time_base), Pacer()
        for picture in pictures:
            stamp = picture.pts * tick if feed.stamped and picture.pts is not None else None
            if feed.bursts:
                if self._duplicates.seen(stamp, picture.checksum()):
                    continue
                time.sleep(0.0 if feed.finite else pacer.pause(stamp, time.monotonic()))
            self._latest = time.monotonic()
            if self._began is None:
                self._began, self.sample = self._latest, picture.sample
                self._make_room(picture, feed.finite)
                reached(self._name, PICTURE)
            self._hand_on(picture, stamp)

    def _make_room(self, picture: LivePicture, finite: bool) -> None:
        if isinstance(self.queue, Backlog):
            self.queue.allow(picture.size)
            if finite:
                self.queue.keep_all()

    def _hand_on(self, picture: LivePicture, stamp: float | None) -> None:
        if self._left:  # it would be counted, but never read
            raise Cancelled
        assert self.feed is not None, "a picture came without a connection"
        self._counts.pass_over(self.feed.passed - self._passed)
        self._passed = self.feed.passed
        self.queue.put(Arrival(picture, self._counts.receive(), stamp, self._latest))

    def next(self, limit: float) -> Any:
        """The next Arrival, or END. Raises TimeoutError after ``limit`` seconds, and Cancelled."""
        return self.queue.get(limit)


def release_freed_memory() -> None:
    """Make glibc return freed memory to the system; takes a few milliseconds. Does nothing elsewhere.

    glibc keeps what a closed connection freed, in fragments that grow with every connection.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
