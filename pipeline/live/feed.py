"""The packets of one connection, and why they ended."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from urllib.parse import urlsplit

import av
from av.container import InputContainer
from av.error import ExitError, FFmpegError, HTTPForbiddenError, HTTPUnauthorizedError, ProtocolNotFoundError
from av.packet import Packet
from av.video.stream import VideoStream

from foveate.pipeline.errors import SourceError
from foveate.pipeline.live.rtp_pictures import JOINED, pictures
from foveate.pipeline.live.rtp_rate import first_pictures, seen_rate, told_rate
from foveate.pipeline.live.target import Target
from foveate.pipeline.settings import LiveSettings, SourceSettings
from foveate.pipeline.sources.container import NO_TIMESTAMPS
from foveate.pipeline.sources.cropping import AS_DECODED, EXACT
from foveate.pipeline.sources.decoding import Feed, Times, reason_of
from foveate.pipeline.sources.schemes import scheme_of
from foveate.pipeline.sources.streams import average_rate, choose_stream, declared_rate, packets_of, sample_aspect

_COUNTED = {"mpjpeg"}  # formats without timestamps, for which libav counts pictures
_ENDLESS = {"mpjpeg", "hls"}  # formats whose length in bytes says nothing about an end
_LOW_DELAY = 1 << 19  # AV_CODEC_FLAG_LOW_DELAY


class RefusedError(SourceError):
    """The server refuses the user or password, or is not trusted; retrying cannot help."""


class _SilenceError(Exception):
    """libav gave up waiting for a packet."""


class LiveFeed:
    """One video stream of one connection. See ``sources.decoding.Feed``. Used and closed by one thread."""

    frames: int | None = None
    decode_order = False
    spliced = True
    times: Times = "stream"
    geometry = AS_DECODED

    def __init__(self, target: Target, live: LiveSettings, source: SourceSettings) -> None:
        """Connect, and choose the stream. Raises SourceError."""
        self.ending: str | None = None  # why there are no more packets; None while there are
        self.finished = False  # it was a file, read to its end
        self.passed = 0  # packets and pictures that were left out to catch up
        self._target, self._latest = target, live.policy == "latest"
        self._limit = _silence(live)
        self._container = _opened(target, live)
        try:
            _refuse_unverified(self._container.format.name, target, live)
            self._describe(choose_stream(self._container, source.stream, target.name), source)
        except BaseException:
            self._container.close()
            raise

    def _describe(self, stream: VideoStream, source: SourceSettings) -> None:
        stream.thread_type = "SLICE"  # decoding pictures in parallel would delay each
        stream.codec_context.flags |= _LOW_DELAY | EXACT
        form = self._container.format
        self.stream = stream
        self.decoder = stream.codec_context
        self.time_base = stream.time_base or Fraction(1, 90_000)
        self.stamped = not (form.flags & NO_TIMESTAMPS or form.name in _COUNTED or form.name.endswith("_pipe"))
        self.bursts = form.name == "hls"  # pictures come a segment at a time
        self._in_parts = form.name == "rtsp" and self.decoder.name in JOINED
        told = average_rate if not self._in_parts else told_rate
        self.rate = declared_rate(stream)
        self.average_rate = told(stream) if self.stamped else None
        self.sample_aspect = sample_aspect(stream)
        self.finite = not self._target.device and _is_finite(self._container)

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield packets until the connection ends, however it ends."""
        try:
            packets = self._in_time(packets_of(self._container, self.stream))
            yield from self._joined(packets) if self._in_parts else packets
        except (ExitError, _SilenceError):
            self.ending = "nothing came any more"
        except FFmpegError as error:
            self.ending = reason_of(error)
        else:
            self.ending = "the sender ended the stream"
            self.finished = self.finite

    def _joined(self, parts: Iterator[Packet[VideoStream]]) -> Iterator[Packet[VideoStream]]:
        """One packet for each picture; the first few show the rate."""
        whole = pictures(self.decoder.name, parts)
        ahead = first_pictures(whole, self.time_base)
        self.average_rate = seen_rate(ahead, self.time_base, self.average_rate)
        yield from ahead
        yield from whole

    def _in_time(self, packets: Iterator[Packet[VideoStream]]) -> Iterator[Packet[VideoStream]]:
        """The packets up to a silence, in which libav gives up: it then hands out what its parser still held.

        Raises _SilenceError in place of that packet, which is as old as the silence.
        """
        while True:
            asked = time.monotonic()
            packet = next(packets, None)
            if packet is None:
                return
            if time.monotonic() - asked >= self._limit:
                raise _SilenceError
            yield packet

    @property
    def may_skip(self) -> bool:
        """Whether old packets are to be left out where decoding is late."""
        return self._latest and not (self.finite or self.bursts)

    def shortfall(self) -> str | None:
        """None: a live stream has no length."""

    def tail(self, ticks: int) -> Feed | None:
        """None: a live stream cannot be read again."""

    def close(self) -> None:
        """Release the container and the decoder."""
        self._container.close()


def _silence(live: LiveSettings) -> float:
    """Seconds without a packet after which a connection is given up."""
    return 2 * live.stall_timeout


def _is_finite(container: InputContainer) -> bool:
    """Whether the stream is known to end. Of formats that send single images, the size is that of one image."""
    form = container.format.name
    sized = container.size > 0 and form not in _ENDLESS and not form.endswith("_pipe")
    return (container.duration or 0) > 0 or sized


def _opened(target: Target, live: LiveSettings) -> InputContainer:
    begin = time.monotonic()
    limits = (live.connect_timeout, _silence(live))
    if target.device and not Path(target.url).exists():
        raise SourceError(f"{target.name}: there is no camera at {target.url}; see ls /dev/video*, or plug it in")
    try:
        return av.open(
            target.url, format=target.format, options=target.options, timeout=limits, metadata_errors="replace"
        )
    except (HTTPUnauthorizedError, HTTPForbiddenError):
        raise RefusedError(f"{target.name}: the server refused the user or password; check both") from None
    except ProtocolNotFoundError:
        scheme = scheme_of(target.url)
        raise RefusedError(
            f"{target.name}: the FFmpeg of this PyAV has no {scheme}://; have another FFmpeg receive and forward it: "
            f"ffmpeg -i {scheme}://... -c copy -f mpegts udp://127.0.0.1:PORT"
        ) from None
    except (FFmpegError, UnicodeError, ValueError) as error:
        if time.monotonic() - begin >= live.connect_timeout:  # RTSP calls it invalid data
            limit = f"{live.connect_timeout:g} s"
            raise SourceError(f"{target.name}: no answer within {limit}; check the address") from None
        from foveate.pipeline.sources.trust import distrust

        distrusted = distrust(target.url, live, max(0.1, live.connect_timeout - (time.monotonic() - begin)))
        if distrusted is not None:
            raise RefusedError(f"{target.name}: {distrusted}") from None
        reason = _reason_unopened(error, target.url)
        raise SourceError(f"{target.name}: cannot be opened: {reason}") from None


def _refuse_unverified(form: str, target: Target, live: LiveSettings) -> None:
    """Raise RefusedError for HLS by https: libav hands the wish to verify on to the playlist, but to no segment."""
    if form == "hls" and live.verify and target.url.startswith("https:"):
        raise RefusedError(
            f"{target.name}: the certificates of HLS segments cannot be verified; read it all the same with "
            "live.verify = false (--live.no-verify)"
        )


def _reason_unopened(error: Exception, url: str) -> str:
    """What ``error``, met while opening ``url``, means and what to do, where libav's own message misleads.

    May look up the host name, which can take seconds.
    """
    if not isinstance(error, FFmpegError):
        return "the address cannot be encoded; check the address"
    if error.errno == errno.EIO and not _resolves(url):
        return "its host name is not known; check the address and the network"
    if error.errno == errno.EPROTONOSUPPORT and url.startswith("rtsp"):
        return "the server refuses this live.transport; choose the other one (--transport)"
    return f"{reason_of(error)}; check the address"


def _resolves(url: str) -> bool:
    """Whether the host name has an address; also True where ``url`` has none."""
    try:
        host = urlsplit(url).hostname
        return host is None or bool(socket.getaddrinfo(host, None))
    except (OSError, ValueError):
        return False
