"""A feed from numbered image files: each file is one packet."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import cast

from av.codec import CodecContext
from av.container import InputContainer
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.address import numbered_files, shown
from foveate.pipeline.sources.cropping import AS_DECODED
from foveate.pipeline.sources.decoding import Begins, Feed, FileFeed, Times, record_damage
from foveate.pipeline.sources.opening import open_container
from foveate.pipeline.sources.streams import choose_stream, sample_aspect
from foveate.pipeline.sources.tiff import without_jpeg

_TRIES = 10  # how many of the first files may be broken
_PICTURES = {"image2", "gif"}  # containers of pictures, beside those of FFmpeg whose names end in _pipe


def _open_picture(file: Path, settings: SourceSettings) -> InputContainer:
    """One file, which must be a picture: of a video, as one packet, most would be lost. Raises SourceError."""
    container = open_container(file, settings, shown(str(file)))
    form = container.format
    if not (form.name.endswith("_pipe") or form.name in _PICTURES):
        container.close()
        raise SourceError(
            f"{shown(str(file))}: a numbered name is for pictures such as PNG or JPEG, and this is {form.long_name}; "
            "give one file, or convert them"
        )
    return container


class PictureFeed:
    """Numbered images as one stream at a fixed rate. See ``SoughtFeed``."""

    def __init__(self, pattern: Path, settings: SourceSettings, damage: Damage) -> None:
        """Find the files, and the codec from the first that can be read. Raises SourceError."""
        self._files = numbered_files(pattern)
        self._damage = damage
        self.time_base = 1 / Fraction(settings.rate).limit_denominator(100_000)
        self.decoder = self._find_decoder(settings, shown(str(pattern)))
        self.decoder.thread_type = "SLICE"  # looking ahead, it would lose good pictures behind a bad last one
        self.rate: float | None = settings.rate
        self.average_rate: float | None = settings.rate
        self.frames: int | None = len(self._files)
        self.times: Times = "setting"
        self.decode_order = self.spliced = False
        self.geometry = AS_DECODED

    def _find_decoder(self, settings: SourceSettings, name: str) -> VideoCodecContext:
        for file in self._files[:_TRIES]:
            try:
                container = _open_picture(file, settings)
            except SourceError as error:
                last = error
                continue
            with container:
                stream = choose_stream(container, None, name)
                self.sample_aspect = sample_aspect(stream)
                decoder = CodecContext.create(stream.codec_context.name, "r")
                assert isinstance(decoder, VideoCodecContext)
                return decoder
        raise last

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield the files' contents in order; a file that cannot be read is counted as damage."""
        for number, file in enumerate(self._files):
            try:
                content = file.read_bytes()
            except OSError:
                content = b""
            if not content:
                record_damage(self._damage, f"{shown(file.name)} is empty or cannot be read")
                continue
            content = without_jpeg(content) if self.decoder.name == "tiff" else content
            packet = cast("Packet[VideoStream]", Packet(content))
            packet.pts = packet.dts = number
            packet.is_keyframe = True  # else the PNG decoder takes it for a difference to the picture before
            packet.time_base = self.time_base
            yield packet

    def obstacle(self, packets: int) -> str | None:
        """None: a picture file shows no more than its decoder reports."""
        return None

    def shortfall(self) -> str | None:
        """None: the files were counted, so none is missing."""
        return None

    @property
    def length(self) -> float:
        """Seconds of all pictures, at the fixed rate."""
        return float(len(self._files) * self.time_base)

    def again(self) -> PictureFeed:
        """The same: nothing is held open between pictures."""
        self.decoder.flush_buffers()
        return self

    def packets_from(self, ticks: int, begins: Begins) -> tuple[int, Iterator[Packet[VideoStream]]]:
        """All packets: of files that cannot be read the numbers are not known beforehand."""
        return 0, self.packets()

    def following(self) -> FileFeed | None:
        """None: the pictures are one stream."""
        return None

    def tail(self, ticks: int) -> Feed | None:
        """None: nothing is lost at the end, because the decoder does not look ahead."""
        return None

    def close(self) -> None:
        """Nothing is held open between files."""
