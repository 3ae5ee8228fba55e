"""Pictures of live connections: what decodes them, and how they become Frames."""

import zlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

from av.video.frame import VideoFrame

from foveate.pipeline.frames import Damage, Frame, LiveTimes
from foveate.pipeline.live.feed import LiveFeed
from foveate.pipeline.sources.decoding import FrameDecoder
from foveate.pipeline.sources.reading import PictureReader

_COMPARED = 65_536  # bytes of a picture's luma, from its middle


class LivePicture(Protocol):
    """A decoded picture, on the host or on a GPU."""

    @property
    def pts(self) -> int | None:
        """Its timestamp, in ticks of the feed."""

    @property
    def size(self) -> int:
        """Bytes of memory that it takes."""

    @property
    def sample(self) -> VideoFrame | None:
        """Of the first picture of a connection: what FFmpeg's decoder makes of it, which describes the stream."""

    @property
    def decoded_on_cpu(self) -> str | None:
        """Why the GPU, which was to decode it, did not."""

    def checksum(self) -> int:
        """The same for the same picture, when it is sent again."""

    def pass_over(self, reader: PictureReader) -> None:
        """Tell ``reader`` that the picture is left out."""

    def frame(self, reader: PictureReader, index: int, time: float, discontinuity: bool, live: LiveTimes) -> Any:
        """The Frame, or what an engine has in its place. Raises SourceError."""


LiveDecoding = Callable[[LiveFeed, Damage], Generator[LivePicture, None, None]]
"""Decodes one connection. The generator is made, iterated and closed by the connection's thread; what is lost is
recorded as damage. Called once for each connection of a source."""


@dataclass(frozen=True, slots=True, eq=False)
class HostPicture:
    """One that FFmpeg decoded. See LivePicture."""

    decoded: VideoFrame
    decoded_on_cpu: str | None = None

    @property
    def pts(self) -> int | None:
        """Its timestamp."""
        return self.decoded.pts

    @property
    def size(self) -> int:
        """Bytes of its planes."""
        return sum(plane.buffer_size for plane in self.decoded.planes)

    @property
    def sample(self) -> VideoFrame:
        """The picture itself."""
        return self.decoded

    def checksum(self) -> int:
        """Of the luma in the middle."""
        luma = memoryview(self.decoded.planes[0])
        begin = max(0, (luma.nbytes - _COMPARED) // 2)
        return zlib.crc32(luma[begin : begin + _COMPARED])

    def pass_over(self, reader: PictureReader) -> None:
        """Note its orientation."""
        reader.pass_over(self.decoded)

    def frame(self, reader: PictureReader, index: int, time: float, discontinuity: bool, live: LiveTimes) -> Frame:
        """The Frame."""
        return reader.frame(self.decoded, index, time, discontinuity, live)


def on_host(feed: LiveFeed, damage: Damage) -> Generator[HostPicture, None, None]:
    """Decode on the CPU. See LiveDecoding."""
    yield from map(HostPicture, FrameDecoder(feed, damage).frames())
