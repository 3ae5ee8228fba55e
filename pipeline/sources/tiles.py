"""A feed from a HEIF picture made of tiles: to FFmpeg each is a stream of its own; here they are joined."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.plane import VideoPlane
from av.video.stream import VideoStream
from numpy.typing import NDArray

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.decoding import Feed, FileFeed, Times
from foveate.pipeline.sources.heif import Still
from foveate.pipeline.sources.opening import open_container


class TileDecoder:
    """Decodes the tiles of one picture, and brings that at the end. See ``decoding.Decoder``."""

    extradata: bytes | None = None

    def __init__(self, still: Still, streams: list[VideoStream]) -> None:
        """``streams``: of the tiles, row by row."""
        self.name = streams[0].codec_context.name
        self.missing = {stream.index for stream in streams}
        self._still, self._streams = still, streams
        self._decoded: dict[int, VideoFrame] = {}  # by the index of the stream

    def decode(self, packet: Packet[VideoStream] | None = None) -> list[VideoFrame]:
        """Take a tile; at the end, without a packet, the picture of all that were decoded. Raises FFmpegError."""
        if packet is None:
            return [self._joined()] if self._decoded else []
        decoder = packet.stream.codec_context
        for frame in (*decoder.decode(packet), *decoder.decode(None)):
            self._decoded[packet.stream.index] = frame
            self.missing.discard(packet.stream.index)
        return []

    def _joined(self) -> VideoFrame:
        still, sample = self._still, next(iter(self._decoded.values()))
        columns = -(-still.width // sample.width)
        joined = VideoFrame(still.width, still.height, sample.format.name)
        joined.colorspace, joined.color_range = still.colour or (sample.colorspace, sample.color_range)
        targets = [_samples(plane, joined) for plane in joined.planes]
        for target, component in zip(targets, joined.format.components, strict=True):
            target[...] = 1 << component.bits - 1  # grey, where a tile is missing
        for number, stream in enumerate(self._streams):
            tile = self._decoded.get(stream.index)
            if tile is not None and (tile.width, tile.height, tile.format.name) == _kind(sample):
                for target, plane in zip(targets, tile.planes, strict=True):
                    row, column = number // columns * plane.height, number % columns * plane.width
                    place = target[row : row + plane.height, column : column + plane.width]
                    place[...] = _samples(plane, tile)[: place.shape[0], : place.shape[1]]
        return joined


def _kind(frame: VideoFrame) -> tuple[int, int, str]:
    return frame.width, frame.height, frame.format.name


def _samples(plane: VideoPlane, frame: VideoFrame) -> NDArray[Any]:
    """A view on a plane of one component, uint8 or uint16 [H, W]."""
    samples = np.dtype(np.uint16 if frame.format.components[0].bits > 8 else np.uint8)
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)[: plane.height]
    return rows[:, : plane.width * samples.itemsize].view(samples)


class TiledFeed:
    """One picture made of tiles. See ``FileFeed``."""

    frames: int | None = 1
    length: float | None = None
    average_rate: float | None = None
    times: Times = "setting"
    sample_aspect = 1.0
    decode_order = spliced = False

    def __init__(self, path: Path, still: Still, settings: SourceSettings) -> None:
        """Open the file, and find its tiles. Raises SourceError."""
        name = shown(str(path))
        if settings.stream:
            raise SourceError(f"{name}: no video stream {settings.stream}; there is one picture: choose 0")
        self.rate: float | None = settings.rate
        self.time_base = Fraction(1, 90_000)
        self.geometry = still.geometry
        self._container = open_container(path, settings, name)
        try:
            self._streams = _tiles(self._container, still, name)
        except SourceError:
            self._container.close()
            raise
        self._tiles = TileDecoder(still, self._streams)
        self.decoder = self._tiles

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield the tiles. Raises FFmpegError."""
        packets = self._container.demux(list(dict.fromkeys(self._streams)))
        return cast("Iterator[Packet[VideoStream]]", packets)

    def obstacle(self, packets: int) -> str | None:
        """None: the file shows no more than its decoders report."""

    def following(self) -> FileFeed | None:
        """None: there is only one picture."""

    def shortfall(self) -> str | None:
        """Say so if there are tiles that did not come."""
        missing = len(self._tiles.missing)
        return f"{missing} of the picture's {len(set(self._streams))} tiles are missing" if missing else None

    def tail(self, ticks: int) -> Feed | None:
        """None: there is only one picture."""

    def again(self) -> None:
        """None: the same."""

    def close(self) -> None:
        """Release the container and the decoders."""
        self._container.close()


def _tiles(container: InputContainer, still: Still, name: str) -> list[VideoStream]:
    """The streams of the tiles, row by row. Raises SourceError where they cannot make up the picture."""
    known = {stream.id: stream for stream in container.streams.video}
    streams = [known[tile] for tile in still.tiles if tile in known and known[tile].codec_context is not None]
    wide, high = (streams[0].width, streams[0].height) if streams else (0, 0)
    needed = -(-still.width // wide) * -(-still.height // high) if wide and high else 0
    if not needed or not len(streams) == len(still.tiles) == needed:
        raise SourceError(
            f"{name}: {len(still.tiles)} tiles, of which {len(streams)} can be read, do not make up its picture of "
            f"{still.width}x{still.height}; convert it to JPEG or PNG"
        )
    for stream in streams:
        stream.codec_context.thread_count = 1  # else each tile has as many threads as there are processors
    return streams
