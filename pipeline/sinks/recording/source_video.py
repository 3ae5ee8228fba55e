"""The video of a file for a recording: its packets as they are, in an MP4."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import av
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream
from numpy.typing import NDArray

from foveate.pipeline.errors import SourceError
from foveate.pipeline.selection import Header
from foveate.pipeline.sources.boxes import in_file
from foveate.pipeline.sources.edits import rewritten_edits
from foveate.pipeline.sources.orientation import UPRIGHT, OrientationReader
from foveate.pipeline.sources.streams import choose_stream

_CODECS: Final = frozenset({"h264", "hevc", "av1", "vp9"})  # that the viewer shows
_CONTAINERS: Final = frozenset({"mov", "matroska"})  # whose timestamps are those of Foveate's frames
_LARGEST: Final = 1 << 30  # bytes of a file: a recording holds the video in one piece, and so does the viewer


class Copied(NamedTuple):
    """Packets of a video."""

    mp4: bytes
    times: NDArray[np.float64]  # of the pictures in seconds, by the source's timestamps, ascending


class SourceVideo:
    """A file whose video can go into a recording without being encoded again."""

    def __init__(self, path: Path, stream: int | None) -> None:
        """``stream`` is the setting source.stream."""
        self._path, self._stream = path, stream

    def copied(self, first: float, last: float) -> Copied:
        """The packets that are needed to show the pictures from ``first`` to ``last``, in seconds by their timestamps.

        Raises OSError (PyAV's errors are such) and SourceError where the file can no longer be read.
        """
        file, times = io.BytesIO(), []
        with av.open(f"file:{self._path}") as source, av.open(file, "w", format="mp4") as target:
            video = choose_stream(source, self._stream, self._path.name)
            copy = target.add_stream_from_template(video)
            for packet in _packets(source, video, first, last):
                assert packet.pts is not None
                times.append(packet.pts * float(packet.time_base))
                packet.stream = copy
                target.mux(packet)
        return Copied(file.getvalue(), np.sort(np.array(times)))


def source_video(header: Header) -> SourceVideo | None:
    """The file that ``header`` names, if its pictures are Foveate's frames as they are: neither turned nor cropped."""
    path, wanted = Path(header.source), header.config.get("source", {}).get("stream")
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST or bool(in_file(path, rewritten_edits)):
            return None
        with av.open(f"file:{path}") as container:
            video = choose_stream(container, wanted, path.name)
            if video.codec.canonical_name not in _CODECS:
                return None
            if container.format.name.split(",")[0] not in _CONTAINERS:
                return None
            frame = next(container.decode(video))
            upright = OrientationReader().read(frame) == UPRIGHT
            whole = (frame.width, frame.height) == (header.width, header.height)
            return SourceVideo(path, wanted) if upright and whole and frame.pts is not None else None
    except (OSError, ValueError, StopIteration, SourceError):
        return None  # it is encoded anew


def _packets(source: InputContainer, video: VideoStream, first: float, last: float) -> Iterator[Packet[VideoStream]]:
    base = float(video.time_base or 1)
    if first > 0:
        source.seek(int(first / base), stream=video)
    for packet in source.demux(video):
        if packet.pts is None or packet.dts is None:
            continue
        if packet.dts * base > last + base:
            return
        yield packet
