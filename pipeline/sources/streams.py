"""Choosing a file's video stream, and its rates and aspect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition
from av.video.stream import VideoStream

from foveate.pipeline.errors import SourceError

_STILL_CODECS = {"png", "apng", "bmp", "tiff", "webp", "jpeg2000", "ppm", "targa"}
_PICTURE_SHARE = 0.1  # a stream shorter than this share of the longest is a picture beside the video
_CLOCK = re.compile(r"(\d+):(\d+):(\d+(?:\.\d+)?)")


def packets_of(container: InputContainer, stream: VideoStream) -> Iterator[Packet[VideoStream]]:
    """The packets of one stream, in the order of the file. Raises FFmpegError.

    A transport stream may announce another stream on the way, as a damaged one does. At a packet of that PyAV fails,
    but can be asked for the next.
    """
    while True:
        try:
            yield from container.demux(stream)
            return
        except IndexError:
            continue


def choose_stream(container: InputContainer, wanted: int | None, name: str) -> VideoStream:
    """The wanted video stream, or else the one the file marks as default, or else the first.

    Attached pictures (cover art) are never the video, and a stream far shorter than the longest (a picture
    muxed as a track) is taken only if asked for. ``wanted`` counts the video streams from 0, attached
    pictures left out. Raises SourceError.
    """
    videos = videos_of(container)
    if not videos:
        raise SourceError(f"{name}: no video stream ({_contents(container)}); give a file that has one")
    if wanted is None and container.format.name == "ico":
        stream = max(videos, key=lambda video: video.width * video.height)  # one picture in several sizes
    elif wanted is None:
        stream = _preferred(videos)
    elif wanted < len(videos):
        stream = videos[wanted]
    else:
        raise SourceError(
            f"{name}: no video stream {wanted}; there are {len(videos)}, counted from 0: choose 0"
            + (f" to {len(videos) - 1}" if len(videos) > 1 else "")
        )
    if wanted is None and stream.disposition & Disposition.dependent:
        raise SourceError(
            f"{name}: only tiles of a picture are found, and not how they are to be joined; convert it to JPEG or PNG"
        )
    if stream.codec_context is None:
        raise SourceError(
            f"{name}: this installation has no decoder for it; convert it (videos to H.264, pictures to PNG)"
        )
    return stream


def videos_of(container: InputContainer) -> list[VideoStream]:
    """The video streams in order, attached pictures left out."""
    return [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]


def declared_rate(stream: VideoStream) -> float | None:
    """Frames per second as the stream states or implies them; None if it does not, or not sensibly."""
    rate = stream.guessed_rate or stream.average_rate
    return float(rate) if rate and 0 < rate <= 1000 else None


def average_rate(stream: VideoStream) -> float | None:
    """Mean frames per second of the whole stream, None if unknown."""
    rate = stream.average_rate
    return float(rate) if rate and 0 < rate <= 1000 else declared_rate(stream)


def sample_aspect(stream: VideoStream) -> float:
    """Width of a pixel / its height; 1.0 if the stream does not state it."""
    aspect = stream.sample_aspect_ratio
    return float(aspect) if aspect else 1.0


def _preferred(videos: list[VideoStream]) -> VideoStream:
    longest = max(_seconds(stream) or 0.0 for stream in videos)

    def rank(stream: VideoStream) -> tuple[bool, bool, bool]:
        flags = stream.disposition
        return bool(flags & Disposition.dependent), _is_picture(stream, longest), not flags & Disposition.default

    return min(videos, key=rank)


def _is_picture(stream: VideoStream, longest: float) -> bool:
    seconds = _seconds(stream)
    if seconds is None:
        return stream.codec_context is not None and stream.codec_context.name in _STILL_CODECS
    return seconds < _PICTURE_SHARE * longest


def _seconds(stream: VideoStream) -> float | None:
    """Length of a stream, from its header or its Matroska statistics tag."""
    if stream.frames == 1:
        return 0.0
    if stream.duration and stream.time_base:
        return float(Fraction(stream.duration) * stream.time_base)
    match = _CLOCK.match(stream.metadata.get("DURATION", ""))
    return int(match[1]) * 3600 + int(match[2]) * 60 + float(match[3]) if match else None


def _contents(container: InputContainer) -> str:
    kinds = sorted({"a cover picture" if s.type == "video" else s.type for s in container.streams})
    return "only " + " and ".join(kinds) if kinds else "no streams at all"
