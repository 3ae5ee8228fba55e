"""Files that stand in for cameras: their packets come at the pace of a camera, again and again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Final

import av
from av.packet import Packet
from av.video.stream import VideoStream

from foveate.bench.clips.encoding import encode
from foveate.pipeline.engine import live_decoding
from foveate.pipeline.live.connection import OpenFeed
from foveate.pipeline.live.decoding import on_host
from foveate.pipeline.live.feed import LiveFeed
from foveate.pipeline.live.source import LiveSource
from foveate.pipeline.live.target import Target
from foveate.pipeline.settings import LiveSettings, Settings, SourceSettings
from foveate.pipeline.sinks import Sink
from foveate.pipeline.stream import Stream, prepared

_ADDRESS: Final = "rtsp://127.0.0.1/"  # stands for that of a camera; nothing connects to it
_CAMERA: Final = {"preset": "veryfast", "crf": "23", "bf": "0", "g": "60", "x264-params": "scenecut=0"}


class PacedFeed(LiveFeed):
    """The packets of a file as a camera sends them, without an end; timestamps go on where the file begins again."""

    def __init__(
        self,
        path: Path,
        rate: float | None,
        delay: float,
        target: Target,
        live: LiveSettings,
        source: SourceSettings,
    ) -> None:
        """``rate``: packets a second, None: as fast as they are taken, once. They begin ``delay`` seconds later."""
        super().__init__(replace(target, url=str(path), format=None, options={}), live, source)
        self.finite = False
        self._rate, self._delay = rate, delay
        self.begin = 0.0  # when the first packet was due, seconds by time.monotonic()

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield each when it is due, or later where decoding is late."""
        time.sleep(self._delay)
        self.begin = time.monotonic()
        number = shift = 0
        while True:
            end = 0  # of the file, in ticks
            for packet in self._container.demux(self.stream):
                if not packet.size or packet.pts is None:
                    continue
                end = max(end, packet.pts + (packet.duration or 0))
                packet.pts += shift
                packet.dts = packet.pts
                if self._rate is not None:
                    time.sleep(max(0.0, self.begin + number / self._rate - time.monotonic()))
                number += 1
                yield packet
            if self._rate is None:
                self.ending = "the file ended"
                return
            shift += end - (self.stream.start_time or 0)
            self._container.seek(self.stream.start_time or 0, stream=self.stream)


def open_paced(feed: OpenFeed, settings: Settings, sinks: Sequence[Sink] = (), name: str = "paced") -> Stream:
    """A Stream of what looks like a camera of that name. Raises what open_stream raises."""
    ready = prepared(settings, sinks, {})
    settings, address = ready.plan.settings, _ADDRESS + name
    decode = live_decoding(ready.engine, address, settings.device or 0) or on_host
    return Stream(LiveSource(address, settings.live, settings.source, None, decode, feed), ready, sinks)


def camera_clip(source: Path, path: Path, size: tuple[int, int], frames: int, rate: int) -> None:
    """Encode so many frames of ``source``, again from its beginning where it is shorter, as cameras do.

    That is H.264 without B-frames, a keyframe every 60. Raises SinkError, FFmpegError.
    """
    encode(path, _scaled(source, size, frames), Fraction(rate), _CAMERA)


def _scaled(source: Path, size: tuple[int, int], frames: int) -> Iterator[av.VideoFrame]:
    left = frames
    while left:
        with av.open(f"file:{source}") as container:
            for frame in container.decode(video=0):
                yield frame.reformat(*size, format="yuv420p")
                left -= 1
                if not left:
                    return
