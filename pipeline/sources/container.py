"""A feed from one file: opened, probed and demultiplexed by libavformat."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import av
from av.container import InputContainer
from av.error import FFmpegError
from av.index import IndexEntries
from av.packet import Packet
from av.video.stream import VideoStream

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.beginning import ENCRYPTED
from foveate.pipeline.sources.boxes import in_file, movies, track_crop
from foveate.pipeline.sources.cropping import EXACT, Crop, Geometry
from foveate.pipeline.sources.decoding import Begins, Feed, FileFeed, Times
from foveate.pipeline.sources.edits import PatchedFile, Rewritten, TimeMap, rewritten_edits
from foveate.pipeline.sources.heif import still_of
from foveate.pipeline.sources.matroska import video_crops
from foveate.pipeline.sources.opening import WHOLE, Part, open_container
from foveate.pipeline.sources.streams import (
    average_rate,
    choose_stream,
    declared_rate,
    packets_of,
    sample_aspect,
    videos_of,
)
from foveate.pipeline.sources.tiff import without_jpeg
from foveate.pipeline.sources.transport import is_scrambled, successor
from foveate.pipeline.sources.truncation import missing_bytes

NO_TIMESTAMPS = 0x80  # AVFMT_NOTIMESTAMPS: elementary streams
_SPLICED = 0x200  # AVFMT_TS_DISCONT: MPEG-TS, MPEG-PS and Ogg
_DECODE_ORDER = {"avi"}  # containers that store no presentation times
_BACK = (0, 1, 10, 100, 1_000, 1_000_000)  # seconds before a time, in which its keyframe is looked for
_MANY = 1 << 30  # pictures; a count as high is no count: AVI written to a pipe has it
INDEXED = {"mov,mp4,m4a,3gp,3g2,mj2"}  # whose index has the position of every packet, unless fragmented
CROPPING = INDEXED | {"matroska,webm"}  # that may declare a cropping


class ContainerFeed:
    """One video stream of a file. See ``SoughtFeed``."""

    def __init__(self, path: Path, settings: SourceSettings, part: Part | None = None) -> None:
        """Open the file, or a part of it, and choose the stream. Raises SourceError."""
        name = shown(str(path))
        self.path = path
        self._settings = settings
        self._part = _first_part(path) if part is None else part
        self._reached = 0  # byte position of the latest packet
        self._edits = _edits(path, name) if self._part == WHOLE else {}
        self._patched = PatchedFile(path, list(self._edits.values())) if self._edits else None
        self._container = open_container(path, settings, name, self._part, self._patched)
        try:
            self._describe(self._chosen(name), settings)
        except SourceError:
            self.close()
            raise

    def _chosen(self, name: str) -> VideoStream:
        for stream in self._container.streams.video:
            if stream.id == self._part.stream:
                return stream
        return choose_stream(self._container, self._settings.stream, name)

    def _describe(self, stream: VideoStream, settings: SourceSettings) -> None:
        stream.thread_type = "AUTO"
        stream.codec_context.flags |= EXACT
        self.stream = stream
        self.decoder = stream.codec_context
        self.time_base = stream.time_base or Fraction(1, 90_000)
        self.times = _times(self._container, stream)
        self.rate = declared_rate(stream)
        self.average_rate = average_rate(stream) if self.times in ("stream", "unknown") else self.rate
        self._times = self._edits[stream.id].times if stream.id in self._edits else None
        self.frames = None if self.is_sequential else _frames(self._container, stream)
        self.index = None if self.is_sequential else _index(self._container, stream)
        self.sample_aspect = sample_aspect(stream)
        self.decode_order = self._container.format.name in _DECODE_ORDER
        self.spliced = bool(self._container.format.flags & _SPLICED)
        self.geometry = Geometry(self._crop())

    def _crop(self) -> Crop | None:
        """The cropping that the container declares. Read from files only, because it needs seeking."""
        try:
            return in_file(self.path, self._crop_in) if self._container.format.name in CROPPING else None
        except OSError:
            return None

    def _crop_in(self, file: BinaryIO, size: int) -> Crop | None:
        """The cropping declared in the ``size`` bytes of such a container. Raises OSError."""
        if self._container.format.name in INDEXED:
            still = still_of(file, size)
            return still.geometry.crop if still else track_crop(file, size, self.stream.id)
        crops = dict(zip(videos_of(self._container), video_crops(file, size), strict=False))
        return crops.get(self.stream)

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield the stream's packets in decoding order. Raises FFmpegError."""
        only_first = self._container.format.name == "apng"
        for number, packet in enumerate(packets_of(self._container, self.stream)):
            self._reached = packet.pos or self._reached
            if self._times is not None:
                _move(packet, self._times)
            if self.decoder.name == "tiff" and packet.size:
                packet = _without_jpeg(packet)
            if only_first:  # FFmpeg marks some that build on what was there before as keyframes
                packet.is_keyframe = number == 0
            yield packet

    def obstacle(self, packets: int) -> str | None:
        """Why no picture could be decoded from so many packets, and what to do, if the container shows it."""
        regular, form = self.path.is_file(), self._container.format.name
        if form in INDEXED and not packets and not regular:
            return (
                "its index is at the end, and a pipe cannot be read backwards; give the file itself, or rewrite it by "
                "`ffmpeg -i FILE -c copy -movflags +faststart NEW`"
            )
        if "enc_key_id" in self.stream.metadata or (
            form == "mpegts" and regular and is_scrambled(self.path, self.stream.id)
        ):
            return ENCRYPTED
        return None

    def shortfall(self) -> str | None:
        """A message if the file is shorter than its own structure announces, else None."""
        if self._part.stop:
            return None
        try:
            missing = missing_bytes(self.path) if self.path.is_file() else 0
        except OSError:
            return "the file is gone"
        return f"the file is cut short: {missing} bytes are missing" if missing else None

    @property
    def length(self) -> float | None:
        """Seconds from the first picture to the end of the last one, by the header; None if it does not say."""
        if self.is_sequential:
            return None
        if self.stream.duration is not None:
            return float(self.stream.duration * self.time_base)
        begin = self.stream.start_time
        if self._container.duration is None or begin is None:
            return None
        start = self._container.start_time or 0  # of the earliest stream
        return (start + self._container.duration) / av.time_base - float(begin * self.time_base)

    @property
    def is_sequential(self) -> bool:
        """Whether it can only be read from beginning to end: one of several movies, or edits that FFmpeg ignores."""
        return self._part.stop > 0 or self._times is not None

    def following(self) -> FileFeed | None:
        """The next movie in the file; of a transport stream, the PID under which the video continues."""
        if self._part.stop:
            later = [*(begin for begin in _movies(self.path) if begin > self._part.stop), 0]
            return ContainerFeed(self.path, self._settings, Part(self._part.stop, later[0]))
        if self._container.format.name != "mpegts" or not self.path.is_file():
            return None
        position = self._part.start + self._reached
        try:
            pid = successor(self.path, self.stream.id, position)
        except OSError as error:
            raise SourceError(f"{shown(str(self.path))}: {(error.strerror or 'cannot be read').lower()}") from None
        return None if pid is None else ContainerFeed(self.path, self._settings, Part(position, 0, pid))

    def again(self) -> ContainerFeed | None:
        """The same file once more; None if it cannot be sought, or stores no presentation times."""
        if self.times != "stream" or self.decode_order or self.is_sequential or not self.path.is_file():
            return None
        try:
            return ContainerFeed(self.path, self._settings, self._part)
        except SourceError:
            return None

    def tail(self, ticks: int) -> Feed | None:
        """The same file once more, from a keyframe at or before a time on; None if it cannot be sought."""
        feed = self.again()
        if feed is None:
            return None
        feed.stream.thread_type = "SLICE"
        try:
            feed._seek_keyframe(ticks)
        except FFmpegError:
            feed.close()
            return None
        return feed

    def _seek_keyframe(self, ticks: int) -> None:
        """Go to a keyframe at or before a time. Raises FFmpegError.

        Containers without an index, such as MPEG-TS, are sought by decoding times, and between keyframes too.
        """
        for back in _BACK:
            target = ticks - round(back / self.time_base)
            self._container.seek(target, stream=self.stream)
            first = next((packet for packet in self.packets() if packet.is_keyframe), None)
            if first is not None and first.pts is not None and first.pts <= ticks:
                break
        self._container.seek(target, stream=self.stream)

    def packets_from(self, ticks: int, begins: Begins) -> tuple[int, Iterator[Packet[VideoStream]]]:
        """Packets from the last keyframe before a time on, and how many pictures come before it.

        All packets, if no index has that number, or decoding cannot begin (``begins``) at the keyframe. Raises
        FFmpegError.
        """
        if self.index is None:
            return 0, self.packets()
        try:
            self._container.seek(ticks, stream=self.stream)
            packets = self.packets()
            first = next(packets, None)
        except FFmpegError:
            first = None
        number = self._number_of(first)
        if first is not None and number is not None and (first.pts or 0) <= ticks and begins(first):
            shown = sum(not self.index[each].is_discard for each in range(number))
            return shown, chain([first], packets)
        self._container.seek(self.index[0].timestamp, stream=self.stream)
        return 0, self.packets()

    def _number_of(self, packet: Packet[VideoStream] | None) -> int | None:
        """How many packets are before this one in the index; None if it is not there."""
        if packet is None or packet.dts is None or self.index is None:
            return None
        number = bisect_left(self.index, packet.dts, key=lambda entry: entry.timestamp)
        return number if number < len(self.index) and self.index[number].timestamp == packet.dts else None

    def close(self) -> None:
        """Release the container and the decoder."""
        self._container.close()
        if self._patched is not None:
            self._patched.close()


def _edits(path: Path, name: str) -> dict[int, Rewritten]:
    """Edit lists that FFmpeg would not follow, by the number of the track. Raises SourceError."""
    try:
        return in_file(path, rewritten_edits) or {}
    except OSError:  # opening it will say what is wrong
        return {}
    except ValueError as error:
        raise SourceError(f"{name}: {error}") from None


def _without_jpeg(packet: Packet[VideoStream]) -> Packet[VideoStream]:
    content = bytes(packet)
    plain = without_jpeg(content)
    if plain is content:
        return packet
    made = cast("Packet[VideoStream]", Packet(plain))
    made.pts, made.dts, made.time_base, made.is_keyframe = packet.pts, packet.dts, packet.time_base, True
    return made


def _move(packet: Packet[VideoStream], times: TimeMap) -> None:
    """Set a packet's times by the file's edit list."""
    if packet.pts is not None:
        packet.duration = times.lasting(packet.pts, packet.duration or 0)
        packet.pts = times(packet.pts)
    if packet.dts is not None:
        packet.dts = times(packet.dts)


def _first_part(path: Path) -> Part:
    """The first of several movies that were joined to one file; else all of it."""
    begins = _movies(path)
    return Part(0, begins[1]) if len(begins) > 1 else WHOLE


def _movies(path: Path) -> list[int]:
    try:
        return in_file(path, movies) or []
    except (OSError, ValueError):  # opening it will say what is wrong
        return []


def _frames(container: InputContainer, stream: VideoStream) -> int | None:
    """How many pictures the header counts; None where it does not, or more than the file has room for."""
    return stream.frames if 0 < stream.frames < (container.size if container.size > 0 else _MANY) else None


def _index(container: InputContainer, stream: VideoStream) -> IndexEntries | None:
    """One entry for each packet of the stream, where the container knows them all beforehand; else None."""
    entries = stream.index_entries
    return entries if container.format.name in INDEXED and len(entries) == stream.frames else None


def _times(container: InputContainer, stream: VideoStream) -> Times:
    form = container.format
    if form.name.endswith("_pipe") or form.name == "image2":
        return "setting"
    if form.flags & NO_TIMESTAMPS:
        return "rate" if declared_rate(stream) else "setting"
    return "stream" if stream.start_time is not None else "unknown"
