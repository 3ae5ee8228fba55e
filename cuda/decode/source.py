"""The Source of the CUDA engine: decoded by the hardware, with PyAV's probing, times and fall-back."""

import logging
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from av.video.frame import VideoFrame

from foveate.cuda.decode.ahead import Ahead, KeyframeHeads, vouched
from foveate.cuda.decode.geometry import CROPPED, TURNED, GeometryWatch
from foveate.cuda.decode.keyframes import NOT_WHOLE, decoded_by_cpu
from foveate.cuda.decode.nvdec import Nvdec, codec_problem, decoder_errors
from foveate.cuda.decode.packets import Coded, flush, packets, parameter_sets
from foveate.cuda.decode.pictures import Picture
from foveate.cuda.driver.device import Device
from foveate.cuda.frames import AnyFrame, DeviceFrame
from foveate.pipeline.errors import first_line
from foveate.pipeline.frames import Colour, Damage, Frame, Source
from foveate.pipeline.info import SourceInfo, decoding_note
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.clock import Stamped, Timed, timed
from foveate.pipeline.sources.coded import codec_of
from foveate.pipeline.sources.container import ContainerFeed
from foveate.pipeline.sources.cropping import AS_DECODED
from foveate.pipeline.sources.decoding import Feed, FrameDecoder, Packets, next_feed, record_damage
from foveate.pipeline.sources.reading import PictureReader
from foveate.pipeline.sources.sampling import sampling_of
from foveate.pipeline.sources.skipping import Skipper, skipper_of

_LOG = logging.getLogger("foveate")


class HostPicture(NamedTuple):
    """A picture that PyAV decoded."""

    pts: int
    frame: VideoFrame


Decoded = Picture | HostPicture


def on_device(source: Source, address: str, settings: SourceSettings, gpu: int = 0) -> Source:
    """``source``, or in its place a DeviceSource, of GPU number ``gpu``.

    Where the hardware cannot decode the video, a warning says why, once, and so does the source's ``info``.
    """
    problem = _problem(source.info, address, gpu)
    feed = None if problem else ContainerFeed(Path(address), settings)
    if feed is not None:
        problem = _problem_of(feed)
        if problem:
            feed.close()
            feed = None
    if feed is None:
        source.info = replace(source.info, decoded_on_cpu=problem)
        _LOG.warning("%s: %s", source.info.name, decoding_note(problem))
        return source
    colour = next(iter(source)).colour
    source.close()
    return DeviceSource(feed, source.info, colour, settings, gpu)


def _problem(info: SourceInfo, address: str, gpu: int) -> str | None:
    if not Path(address).is_file():
        return "not one file"
    if info.rotation or info.mirrored:
        return TURNED
    if info.frames == 1:
        return "a single picture"
    return codec_problem(info.codec, info.pixel_format, info.width, info.height, gpu)


def _problem_of(feed: ContainerFeed) -> str | None:
    if feed.times != "stream" or feed.decode_order:
        return "the file has no presentation times"
    if feed.is_sequential:
        return "the file holds several movies, or an edit list with gaps, held pictures or other speeds"
    if feed.geometry.crop:
        return CROPPED
    try:
        return GeometryWatch(feed.decoder.name).problem(parameter_sets(feed))
    except ValueError as error:
        return str(error)


def _kind(feed: ContainerFeed) -> tuple[str, str | None]:
    """Codec and pixel format."""
    return feed.decoder.name, feed.decoder.pix_fmt


class DeviceSource:
    """DeviceFrames of one file. Iterated and closed by the thread that owns the GPU.

    From where the stream asks for what the hardware does not do, they are Frames that are decoded on the CPU.
    """

    def __init__(
        self, feed: ContainerFeed, info: SourceInfo, colour: Colour, settings: SourceSettings, gpu: int = 0
    ) -> None:
        self.info = info
        self.damage = Damage()
        self._feed = feed
        self._colour = colour
        self._colours: deque[tuple[int, Colour]] = deque()  # of later pictures, from such a timestamp on
        self._numerator, self._denominator = feed.time_base.as_integer_ratio()
        self._settings, self._gpu = settings, gpu
        self._first = round(Fraction(info.start) / feed.time_base)  # ticks; the hardware may show earlier ones, badly
        self._origin: int | None = None  # the first timestamp, in ticks
        self._durations: dict[int, int] = {}  # ticks, of packets whose pictures have not come out yet, by timestamp
        self._received = 0  # pictures that came packet by packet from one feed
        self._reached: int | None = None  # time of the last of them, in ticks
        self._beyond: Coded | None = None  # a packet that the hardware cannot decode rightly
        self._dropped: set[int] = set()  # timestamps of pictures that are decoded but not to be shown
        self._decoded = self._decode()
        self._stamped = self._stamp()
        self._nominal = 1 / (feed.rate or settings.rate)
        self._pictures = timed(self._stamped, self._nominal, feed.spliced)
        self._reader = PictureReader(info.name, feed.geometry)
        self._sampling = sampling_of(settings, feed.length, info.name)
        self._chosen = self._all() if self._sampling.is_everything else self._sampled()
        self._frames: Iterator[AnyFrame] = islice(self._chosen, settings.frames)

    def __iter__(self) -> Iterator[Any]:
        """Yield frames in presentation order. Raises EngineError."""
        return self._frames

    def close(self) -> None:
        """Release the decoder. Safe to call twice; called by the thread that reads."""
        self._frames = iter(())
        # A closed one need not let go of the next.
        for generator in (self._chosen, self._pictures, self._stamped, self._decoded):
            generator.close()
        self._feed.close()

    def _all(self) -> Generator[AnyFrame, None, None]:
        yield from map(self._frame, count(), self._pictures)

    def _sampled(self) -> Generator[AnyFrame, None, None]:
        """The pictures that are looked at; where the packets tell enough, the others are not decoded for nothing."""
        skipper = self._skipper()
        if skipper is not None:
            yield from self._skipped(skipper)
            return
        for decision in self._sampling.decide(self._pictures):
            picture = decision.picture.item
            if decision.wanted:
                yield self._frame(decision.number, decision.picture)
            elif isinstance(picture, HostPicture):
                self._reader.pass_over(picture.frame)

    def _skipper(self) -> Skipper | None:
        feed = None if self.info.interlaced else self._feed.again()
        if feed is None:
            return None
        skipper = skipper_of(feed, self._sampling, self._first, self._nominal, self.damage)
        if skipper is not None:
            self._feed.close()
            self._feed = feed
        return skipper

    def _skipped(self, skipper: Skipper) -> Generator[AnyFrame, None, None]:
        number = -1
        with Device(self._gpu) as device, device.errors():
            for run in skipper.runs():
                with closing(self._by_hardware(device, run)) as pictures:
                    for picture in pictures:
                        self._durations.pop(picture.pts, None)
                        taken = skipper.take(picture.pts)
                        if taken is not None:
                            number, time = taken.number, taken.picture
                            yield self._frame(number, Timed(picture, time.time, time.jumped))
                if self._beyond is not None:
                    break
        if self._beyond is not None:
            self._warn(self._beyond)
            yield from self._sampled_on_host(number)
        elif skipper.is_followed():
            yield from self._sampled_on_host(skipper.decided - 1)
        else:
            skipper.finish()

    def _sampled_on_host(self, number: int) -> Generator[Frame, None, None]:
        """What is looked at behind picture ``number``."""
        source = open_source(str(self._feed.path), self._settings)
        with closing(source):
            yield from (frame for frame in source if frame.index > number)
        self.damage = source.damage

    def _frame(self, index: int, timed_picture: Timed[Decoded]) -> AnyFrame:
        picture = timed_picture.item
        if isinstance(picture, HostPicture):
            return self._reader.frame(picture.frame, index, timed_picture.time, timed_picture.jumped)
        while self._colours and self._colours[0][0] <= picture.pts:
            _, self._colour = self._colours.popleft()
        return DeviceFrame(
            index,
            timed_picture.time,
            picture.width,
            picture.height,
            picture.surface,
            picture.chroma_row,
            self._colour,
            timed_picture.jumped,
        )

    def _stamp(self) -> Generator[Stamped[Decoded], None, None]:
        for picture in self._decoded:
            if picture.pts in self._dropped:
                self._dropped.remove(picture.pts)
                continue
            if picture.pts < self._first and self._origin is None:
                continue
            if self._origin is None:
                self._origin = picture.pts
            seconds = (picture.pts - self._origin) * self._numerator / self._denominator
            ticks = self._durations.pop(picture.pts, 0)
            if isinstance(picture, HostPicture):
                ticks = picture.frame.duration or 0
            duration = ticks * self._numerator / self._denominator
            yield Stamped(picture, seconds, duration or None)

    def _decode(self) -> Generator[Decoded, None, None]:
        """All pictures, past what is damaged."""
        with Device(self._gpu) as device, device.errors():
            if vouched(self._feed):
                yield from self._ahead(device)
            else:
                kind, hardware, more = _kind(self._feed), True, True
                while more:
                    hardware &= _kind(self._feed) == kind
                    if hardware:
                        self._note_loss((yield from self._packet_by_packet(device, self._feed)))
                    else:
                        yield from self._whole_on_host(self._feed)
                    more = self._goes_on()

    def _goes_on(self) -> bool:
        """Turn to the stream with which the video goes on, if there is one."""
        following = next_feed(self._feed, self.damage)
        if isinstance(following, ContainerFeed):
            self._feed = following
        return following is not None

    def _whole_on_host(self, feed: ContainerFeed) -> Generator[HostPicture, None, None]:
        """The pictures of a stream of another kind than the one before it."""
        _LOG.warning("%s: goes on as %s, decoded on the CPU", self.info.name, codec_of(feed.decoder.name))
        for frame in FrameDecoder(feed, self.damage).frames():
            if frame.pts is not None:
                yield HostPicture(frame.pts, frame)

    def _ahead(self, device: Device) -> Generator[Decoded, None, None]:
        """Decoded ahead; from where that ends before the index does, packet by packet."""
        expected, received, reached = len(self._feed.index or ()), 0, None
        with closing(self._before_another_format(device)) as pictures:
            for picture in pictures:
                received, reached = received + 1, picture.pts
                yield picture
        if received < expected:
            with closing(self._rest(device, reached)) as rest:
                for picture in rest:
                    received += 1
                    yield picture
        self._note_loss(expected - received - self.damage.frames)

    def _before_another_format(self, device: Device) -> Generator[Decoded, None, None]:
        """Decoded ahead up to where another decoder may soon be needed."""
        received = 0
        with closing(KeyframeHeads(self._feed)) as heads:
            if heads.ends(received):
                return
            with closing(Ahead(device, self._feed)) as decoder:
                for picture in decoder:
                    received += 1
                    yield picture
                    if heads.ends(received):
                        return

    def _rest(self, device: Device, reached: int | None) -> Generator[Decoded, None, None]:
        """The pictures behind the time ``reached``; None: all."""
        feed = self._feed if reached is None else self._feed.tail(reached)
        if feed is None:
            return
        with closing(feed), closing(self._packet_by_packet(device, feed)) as pictures:
            for picture in pictures:
                if reached is None or picture.pts > reached:
                    yield picture

    def _packet_by_packet(self, device: Device, feed: Feed) -> Generator[Decoded, None, int]:
        """Returns how many pictures did not come out, of packets that seemed whole, from the first keyframe on."""
        lost = yield from self._by_hardware(device, feed)
        if self._beyond is not None:
            yield from self._on_host(feed, self._beyond)
        return lost

    def _by_hardware(self, device: Device, feed: Packets) -> Generator[Picture, None, int]:
        """The same, up to a packet that the hardware cannot decode rightly, which is then ``_beyond``."""
        codec = codec_of(feed.decoder.name)
        decoder = Nvdec(device, codec)
        self._beyond = self._reached = None
        sent, self._received = 0, 0
        try:
            for coded in packets(feed, self.damage):
                problem = coded.problem
                if coded.begins is not None and problem is None:
                    problem = self._another_format(codec, coded.begins, coded.ticks)
                if problem is not None:
                    self._beyond = coded._replace(problem=problem)
                    break
                if coded.begins is not None:
                    yield from self._through(decoder, flush())
                    decoder.close()
                    decoder = Nvdec(device, codec)
                sent += coded.keyframe or sent > 0
                self._note(coded)
                yield from self._through(decoder, coded.data)
            yield from self._through(decoder, flush())
        finally:
            decoder.close()
        return sent - self._received

    def _another_format(self, codec: str, keyframe: bytes, ticks: int) -> str | None:
        """Note the colour of what begins at a keyframe. Returns why the hardware does not decode it; None: it does."""
        sample = decoded_by_cpu(codec, keyframe)
        if sample is None:
            return NOT_WHOLE
        self._colours.append((ticks, PictureReader("", AS_DECODED).read(sample).colour))
        return codec_problem(codec, sample.format.name, sample.width, sample.height, self._gpu)

    def _warn(self, coded: Coded) -> float:
        """Say that the hardware's part ends at a packet; its time in seconds."""
        seconds = (coded.ticks - self._first) * self._numerator / self._denominator
        _LOG.warning("%s: decoded on the CPU from %.1f s on: %s", self.info.name, seconds, coded.problem)
        return seconds

    def _on_host(self, feed: Feed, coded: Coded) -> Generator[HostPicture, None, None]:
        """The pictures behind the last one, from a packet on that the hardware cannot decode rightly."""
        seconds = self._warn(coded)
        tail = feed.tail(coded.ticks)
        if tail is None:
            record_damage(self.damage, f"nothing is shown from {seconds:.1f} s on: {coded.problem}")
            return
        reached = self._reached
        with closing(tail):
            tail.frames = None  # what is missing of the whole file is not to be counted here
            for frame in FrameDecoder(tail, self.damage).frames():
                if frame.pts is not None and (reached is None or frame.pts > reached):
                    yield HostPicture(frame.pts, frame)

    def _note(self, coded: Coded) -> None:
        """Keep what must be known of its picture when that comes out."""
        self._durations[coded.ticks] = coded.duration
        if not coded.shown:
            self._dropped.add(coded.ticks)

    def _through(self, decoder: Nvdec, packet: Any) -> Iterator[Picture]:
        try:
            for picture in decoder.decode(packet):
                self._received, self._reached = self._received + 1, picture.pts
                yield picture
        except decoder_errors() as error:
            record_damage(self.damage, f"a picture could not be decoded: {first_line(error)}")
            self._received += 1  # it is accounted for

    def _note_loss(self, missing: int) -> None:
        """Once everything is through: why there are fewer pictures than there should be, if so."""
        reason = self._feed.shortfall()
        if reason is None and missing > 0 and not self.info.interlaced:
            reason = "pictures could not be decoded"
        if reason is not None and reason not in self.damage.messages:
            announced = (self._feed.frames or 0) - len(self._dropped)
            record_damage(self.damage, reason, max(missing, 1) if announced else 1)
