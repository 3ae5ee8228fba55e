"""A stream that is given its frames one by one, and answers each with its Selection."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Self, Unpack

from foveate.pipeline.bounded_queue import Cancelled
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.frames import FrameView
from foveate.pipeline.info import EngineInfo, SourceInfo
from foveate.pipeline.keywords import SettingsKeywords
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks.base import Sink
from foveate.pipeline.sources.arrays import Layout
from foveate.pipeline.sources.own import PushedSource
from foveate.pipeline.stream import Prepared, Stream, prepared, rated
from foveate.pipeline.stream_controls import StreamControls
from foveate.pipeline.timing import StageReport


def open_push_stream(
    settings: Settings | None = None,
    /,
    *,
    fps: float | None = None,
    layout: Layout = "rgb",
    sinks: Sequence[Sink] = (),
    **overrides: Unpack[SettingsKeywords],
) -> PushStream:
    """A stream for a loop of your own: ``selection = stream.push(frame)``.

    For pictures, ``fps``, ``layout``, ``sinks`` and the settings see open_stream. Raises SettingsError and EngineError.

    >>> import numpy as np
    >>> with open_push_stream(fps=30, budget=50) as stream:
    ...     selection = stream.push(np.zeros((120, 160, 3), np.uint8))
    >>> selection.width, selection.height
    (160, 120)
    """
    ready = prepared(settings, sinks, rated(overrides, fps), lockstep=True)
    chosen = ready.plan.settings.source.model_dump(exclude={"rate"}, exclude_defaults=True)
    if chosen:
        name = next(iter(chosen))
        raise SettingsError(f"source.{name} chooses among the frames of a source, and here every frame is pushed")
    return PushStream(PushedSource(ready.plan.settings.source, fps is not None, layout), ready, sinks)


class PushStream(StreamControls):
    """Takes frames and gives Selections. A context manager. Nothing runs before the first frame.

    >>> import numpy as np
    >>> with open_push_stream() as stream:
    ...     times = [stream.push(np.zeros((64, 64), np.uint8), time).time for time in (10.0, 10.5)]
    >>> times
    [0.0, 0.5]
    """

    def __init__(self, source: PushedSource, ready: Prepared, sinks: Sequence[Sink]) -> None:
        super().__init__(ready.plan, ready.feedback)
        self._source = source
        self._ready = ready
        self._sinks = sinks
        self._stream: Stream | None = None  # once there is a frame: its size is in the outputs' header
        self._turn = threading.Lock()
        self._closed = False

    def push(self, picture: object, time: float | None = None) -> Selection:
        """The Selection of the next frame. From any thread; two at once take turns.

        ``picture`` is copied, so its memory may be used again. ``time`` is in seconds, and grows; without it that of a
        frame of PyAV or torchcodec counts, or else the rate. A Selection's time counts from the first frame's.

        Raises SourceError for what is no picture, and for a time that does not grow: that frame counts as never given.
        Raises what a stage raises, which closes the stream, and ValueError once it is closed.
        """
        with self._turn:
            if self._closed:
                raise ValueError("the stream is closed, and takes no more frames")
            frame = self._source.take(picture, time)
            if self._stream is None:
                self._stream = Stream(self._source, self._ready, self._sinks)
            try:
                self._source.put(frame)
                return next(self._stream)
            except (Cancelled, StopIteration):
                raise ValueError("the stream was closed while a frame was pushed") from None
            except BaseException:
                self._closed = True
                raise

    @property
    def frame(self) -> FrameView | None:
        """The frame that the latest Selection was made of, None before the first one; see Stream.frame."""
        return None if self._stream is None else self._stream.frame

    @property
    def info(self) -> SourceInfo | None:
        """What is known of the frames; None before the first one."""
        return None if self._stream is None else self._stream.info

    @property
    def engine(self) -> EngineInfo:
        """Which engine it is, and what it leaves to the CPU."""
        return self._ready.engine.info

    def report(self) -> tuple[StageReport, ...]:
        """Times of each stage so far."""
        return () if self._stream is None else self._stream.report()

    def close(self) -> None:
        """End all stages and wait for them. Outputs are closed, and valid. Safe to call twice, and from any thread."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
