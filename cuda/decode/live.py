"""Live packets decoded by the hardware, and by the CPU for as long as the hardware cannot."""

from __future__ import annotations

import logging
import math
import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from av.error import FFmpegError
from av.packet import Packet
from av.video.frame import VideoFrame

from foveate.cuda.decode.annex_b import SEQUENCE
from foveate.cuda.decode.coded_stream import CodedStream, Unit
from foveate.cuda.decode.keyframes import NOT_WHOLE, decoded_by_cpu
from foveate.cuda.decode.nvdec import Nvdec, codec_problem
from foveate.cuda.decode.packets import flush, packet_data
from foveate.cuda.decode.pictures import Picture
from foveate.cuda.driver.device import Device
from foveate.cuda.frames import DeviceFrame
from foveate.pipeline.errors import FoveateError
from foveate.pipeline.frames import Colour, Damage, LiveTimes
from foveate.pipeline.info import decoding_note
from foveate.pipeline.live.catching_up import CatchingUp
from foveate.pipeline.live.decoding import HostPicture, LivePicture, on_host
from foveate.pipeline.live.feed import LiveFeed
from foveate.pipeline.live.opening import DECODER, KEYFRAME, reached
from foveate.pipeline.sources.beginning import is_encrypted
from foveate.pipeline.sources.coded import codec_of
from foveate.pipeline.sources.cropping import AS_DECODED
from foveate.pipeline.sources.decoding import reason_of, record_damage
from foveate.pipeline.sources.reading import PictureReader

_LOG = logging.getLogger("foveate")
_INSIDE: Final = 24  # pictures that have not come out, of which some are lost: more than the hardware holds
_REMEMBERED: Final = 256  # pictures that have not come out, of which anything is kept
_FAILURES: Final = 8  # packets in a row that the hardware refuses, after which it is not asked for a while
_RETRY: Final = 30.0  # seconds of that while


@dataclass(frozen=True, slots=True, eq=False)
class DevicePicture:
    """One that the hardware decoded. See pipeline.live.decoding.LivePicture."""

    decoded: Picture
    pts: int | None
    colour: Colour
    packet_checksum: int
    sample: VideoFrame | None
    decoded_on_cpu: None = None

    @property
    def size(self) -> int:
        """Bytes on the device."""
        return self.decoded.surface.pixels.nbytes

    def checksum(self) -> int:
        """Of its packet."""
        return self.packet_checksum

    def pass_over(self, reader: PictureReader) -> None:
        """Nothing in it holds for later pictures."""

    def frame(
        self, reader: PictureReader, index: int, time: float, discontinuity: bool, live: LiveTimes
    ) -> DeviceFrame:
        """The DeviceFrame."""
        picture = self.decoded
        size = picture.width, picture.height
        return DeviceFrame(index, time, *size, picture.surface, picture.chroma_row, self.colour, discontinuity, live)


class LiveDecoding:
    """Decodes the connections of one source. See pipeline.live.decoding.LiveDecoding."""

    def __init__(self, name: str, gpu: int = 0) -> None:
        """``name`` is the source's, without passwords."""
        self.name, self._gpu = name, gpu
        self._reported: str | None = None  # why the CPU decodes, as was said last
        self._skipped_reported = False

    def __call__(self, feed: LiveFeed, damage: Damage) -> Generator[LivePicture, None, None]:
        """The pictures of one connection. Raises EngineError."""
        problem = self._never(feed)
        if problem is not None:
            self.tell(problem)
            for picture in on_host(feed, damage):
                yield HostPicture(picture.decoded, problem)
            return
        packets = CatchingUp(feed)
        with Device(self._gpu) as device, device.errors():
            connection = _Connection(device, feed, packets, damage, self)
            try:
                yield from connection.pictures()
            finally:
                connection.close()

    def tell(self, problem: str | None) -> None:
        """Say that the CPU decodes from now on, or that the GPU does again; each change once."""
        if problem == self._reported:
            return
        self._reported = problem
        _LOG.warning("%s: %s", self.name, decoding_note(problem) or "decoded on the GPU again")

    def report_skipped(self, number: int) -> None:
        """Say that so many pictures are left out; only the first time that there are any."""
        if number and not self._skipped_reported:
            self._skipped_reported = True
            _LOG.warning("%s: skipped %d pictures that came before the decoder was ready", self.name, number)

    @staticmethod
    def _never(feed: LiveFeed) -> str | None:
        """Why no packet of a connection is for the hardware."""
        if feed.decoder.name not in SEQUENCE:
            return f"live streams of {codec_of(feed.decoder.name)} are not decoded by the hardware"
        try:
            CodedStream(feed.decoder.name, feed.decoder.extradata or b"")
        except ValueError as error:
            return str(error)
        return None


@dataclass(frozen=True, slots=True)
class _Sent:
    """What is known of a packet whose picture has not come out."""

    pts: int | None
    checksum: int


_UNKNOWN: Final = _Sent(None, 0)


class _Connection:
    """The packets of one connection, and whichever decoder has them now."""

    def __init__(
        self, device: Device, feed: LiveFeed, packets: CatchingUp, damage: Damage, source: LiveDecoding
    ) -> None:
        self._device, self._feed, self._packets, self._damage, self._source = device, feed, packets, damage, source
        self._codec = feed.decoder.name
        self._stream = CodedStream(self._codec, feed.decoder.extradata or b"")
        self._hardware: Nvdec | None = None
        self._problem: str | None = None  # why the CPU decodes
        self._at_once = False  # see Nvdec
        self._is_new = False  # the hardware decoder, which is not ready before its first packet is through
        self._colour = Colour()
        self._sample: VideoFrame | None = None  # until a picture takes it along
        self._number = 0  # of the latest packet
        self._sent: dict[int, _Sent] = {}  # by the timestamp that the decoder was given
        self._failures = 0  # packets in a row
        self._failure = ""  # why the hardware is asked for nothing
        self._failing_until = 0.0  # seconds by time.monotonic()
        self._retry = 0.0  # seconds by time.monotonic(); from then on the hardware is asked again, at a keyframe

    def pictures(self) -> Iterator[LivePicture]:
        """All pictures, past what is damaged."""
        for packet in self._packets:
            if not packet.size:  # would end the decoder's work
                continue
            if is_encrypted(packet):
                record_damage(self._damage, "a picture is encrypted")
                continue
            try:
                unit = self._stream.take(bytes(packet), packet.is_keyframe)
            except ValueError as error:
                record_damage(self._damage, f"a picture could not be decoded: {error}")
                continue
            if unit is None:
                continue
            if unit.begins or (unit.keyframe and self._asks_again(unit)):
                yield from self._begin(unit)
                self._is_new = True
            if self._hardware is not None:
                yield from self._by_hardware(unit, packet)
                self._packets.go_on(self._at_once and not self._sent)
            elif self._problem is not None:
                yield from self._on_host(packet)
        yield from self._flushed()

    def _asks_again(self, unit: Unit) -> bool:
        """Whether another decoder may be right from a keyframe on.

        One that reorders, and has lost pictures, hands out the timestamps of these with later ones.
        """
        if unit.problem is not None or self._hardware is not None:
            return unit.problem != self._problem or len(self._sent) > _INSIDE
        return time.monotonic() >= self._retry

    def _begin(self, unit: Unit) -> Iterator[LivePicture]:
        """End what decodes, and choose what decodes from a keyframe on."""
        reached(self._source.name, KEYFRAME)
        yield from self._flushed()
        self.close()
        self._sample = sample = decoded_by_cpu(self._codec, unit.data)
        self._at_once, self._retry = not unit.reorders, 0.0
        self._problem = unit.problem or self._problem_of(sample) or self._still_failing()
        if self._problem is None and sample is not None:
            self._colour = PictureReader("", AS_DECODED).read(sample).colour
            self._problem = self._open_hardware()
        self._source.tell(self._problem)

    def _problem_of(self, sample: VideoFrame | None) -> str | None:
        """Why the hardware does not decode such pictures."""
        if sample is None:
            return NOT_WHOLE
        size = sample.width, sample.height
        problem = codec_problem(self._codec, sample.format.name, *size, self._device.index)
        if problem is not None:
            self._retry = math.inf  # until the format is another
        return problem

    def _still_failing(self) -> str | None:
        if time.monotonic() >= self._failing_until:
            return None
        self._retry = self._failing_until
        return self._failure

    def _open_hardware(self) -> str | None:
        """Make the decoder; why there is none."""
        self._failures = 0
        try:
            self._hardware = Nvdec(self._device, self._codec, self._at_once)
        except Exception as error:  # noqa: BLE001 - PyNvVideoCodec's are of several kinds
            self._give_up(error)
        return self._still_failing()

    def _give_up(self, error: Exception) -> None:
        """Ask the hardware for nothing for a while."""
        self._failing_until = time.monotonic() + _RETRY
        self._failure = f"the hardware decoder failed ({_first_line(error)})"

    def _by_hardware(self, unit: Unit, packet: Packet[Any]) -> Iterator[LivePicture]:
        self._number += 1
        timestamp = self._timestamp(packet)
        checksum = zlib.crc32(bytes(packet)) if self._feed.bursts else 0
        self._sent[timestamp] = _Sent(packet.pts, checksum)
        try:
            yield from self._through(packet_data(unit.data, timestamp, self._at_once))
            self._failures = 0
        except FoveateError:
            raise
        except Exception as error:  # noqa: BLE001 - PyNvVideoCodec's are of several kinds
            record_damage(self._damage, f"a picture could not be decoded: {_first_line(error)}")
            self._sent.pop(timestamp, None)
            self._failures += 1
            if self._failures >= _FAILURES:
                self._give_up(error)
                self.close()
                self._stream.begin_anew()

    def _timestamp(self, packet: Packet[Any]) -> int:
        """For the decoder, which hands out the least timestamp with each picture, in the order of presentation.

        Without reordering that is the packet's number, since its own may be missing, or not be the only one.
        """
        return self._number if self._at_once or packet.pts is None else packet.pts

    def _through(self, data: Any) -> Iterator[LivePicture]:
        assert self._hardware is not None, "there is no decoder"
        pictures = list(self._hardware.decode(data))
        if self._is_new:
            self._is_new = False
            reached(self._source.name, DECODER)
            self._packets.catch_up(may_skip=self._at_once)
        kept = len(pictures) if pictures and self._at_once else _REMEMBERED
        self._lose(list(self._sent)[:-kept])
        for picture in pictures:
            sent = self._sent.pop(next(iter(self._sent), 0) if self._at_once else picture.pts, _UNKNOWN)
            if self._packets.leaves_out(sent.pts):
                continue
            self._source.report_skipped(self._feed.passed)
            sample, self._sample = self._sample, None
            yield DevicePicture(picture, sent.pts, self._colour, sent.checksum, sample)

    def _lose(self, timestamps: Sequence[int]) -> None:
        """Count pictures that will not come out any more, by the timestamps that the decoder was given."""
        for timestamp in timestamps:
            del self._sent[timestamp]
        if timestamps:
            record_damage(self._damage, "pictures could not be decoded", len(timestamps))

    def _on_host(self, packet: Packet[Any] | None) -> Iterator[LivePicture]:
        """Of the decoder that belongs to the feed; without a packet, what is left in it."""
        try:
            frames = self._feed.decoder.decode(packet)
        except FFmpegError as error:
            record_damage(self._damage, f"a picture could not be decoded: {reason_of(error)}")
            return
        for frame in frames:
            if frame.is_corrupt:
                record_damage(self._damage, "a picture was decoded with errors")
            yield HostPicture(frame, self._problem)

    def _flushed(self) -> Iterator[LivePicture]:
        """What is left inside, before another format or the end."""
        if self._hardware is not None:
            try:
                yield from self._through(flush())
            except FoveateError:
                raise
            except Exception as error:  # noqa: BLE001 - as above; what is lost with it is counted below
                _LOG.debug("%s", error)
            self._lose(list(self._sent))
        elif self._problem is not None:
            yield from self._on_host(None)
            self._feed.decoder.flush_buffers()

    def close(self) -> None:
        """Release the hardware decoder; pictures that are still held stay valid."""
        hardware, self._hardware = self._hardware, None
        if hardware is not None:
            hardware.close()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
