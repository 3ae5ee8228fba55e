"""A camera for tests, which sends by RTSP what it is told to send, when it is told to."""

from __future__ import annotations

import base64
import re
import socket
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, cast

import av
import numpy as np
from av.codec.context import Flags
from av.video.stream import VideoStream

RATE = 25
TICKS = 90_000 // RATE  # from one picture to the next
WRAP = 60  # pictures after which timestamps of 32 bits begin again at 0
SIZE = 320, 240
_MEDIA = {"libx264": "96 H264", "libx265": "96 H265", "mpeg4": "96 MP4V-ES", "mjpeg": "26 JPEG"}
_REPORTS = range(200, 205)  # types of RTCP packets


def moving(count: int) -> Iterator[av.VideoFrame]:
    """Noise that moves by steps of all sizes: keyframes take many RTP packets, and other pictures one or some."""
    width, height = SIZE
    noise = np.random.default_rng(1).integers(0, 256, (height // 4, width // 2, 3)).astype(np.uint8)
    noise = noise.repeat(4, 0).repeat(4, 1)
    for number in range(count):
        left = number * number % width
        yield av.VideoFrame.from_ndarray(np.ascontiguousarray(noise[:, left : left + width]), format="rgb24")


class _Written:
    """What FFmpeg's RTP muxer writes, one packet each time."""

    def __init__(self) -> None:
        self.packets: list[bytes] = []

    def write(self, data: bytes) -> int:
        self.packets.append(bytes(data))
        return len(data)


class Footage:
    """Coded pictures, in the order of decoding, and the RTP packets of each."""

    def __init__(self, encoder: str, count: int, options: Mapping[str, str], in_band: bool = True) -> None:
        """``in_band``: parameter sets come with the keyframes, and not only in the session description."""
        self.encoder = encoder
        self.coded: list[bytes] = []
        self.packets: list[list[bytes]] = []
        written = _Written()
        with av.open(written, "w", format="rtp", options={"packetsize": "1200", "seq": "65500"}) as out:
            stream = cast(VideoStream, out.add_stream(encoder, rate=RATE, options=dict(options)))
            stream.width, stream.height = SIZE
            stream.pix_fmt = "yuvj420p" if encoder == "mjpeg" else "yuv420p"
            stream.codec_context.flags |= 0 if in_band else Flags.global_header
            for number, frame in enumerate([*moving(count), None]):
                for packet in stream.encode(_at(frame, number, stream.pix_fmt)):
                    self.coded.append(bytes(packet))
                    written.packets.clear()
                    out.mux(packet)
                    self.packets.append([each for each in written.packets if each[1] not in _REPORTS])
            sets = stream.codec_context.extradata or self.coded[0]
        first = _stamp(self.packets[0][0])
        self.packets = [[_stamped(each, first) for each in packets] for packets in self.packets]
        self._sets = [base64.b64encode(unit).decode() for unit in re.split(b"\0{2,3}\1", sets)[1:]]

    def description(self) -> str:
        """By which it is offered (SDP)."""
        media, sets = _MEDIA[self.encoder], self._sets
        kind, name = media.split()
        lines = ["v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=camera", "t=0 0", f"m=video 0 RTP/AVP {kind}"]
        if kind == "96":
            told = {
                "libx264": f"packetization-mode=1; sprop-parameter-sets={','.join(sets[:2])}",
                "libx265": "; ".join(
                    f"sprop-{which}={unit}" for which, unit in zip(("vps", "sps", "pps"), sets, strict=False)
                ),
                "mpeg4": "profile-level-id=1",
            }
            lines += [f"a=rtpmap:96 {name}/90000", f"a=fmtp:96 {told[self.encoder]}"]
        return "\r\n".join([*lines, "a=control:track", ""])


def _at(frame: av.VideoFrame | None, number: int, pixels: str | None) -> av.VideoFrame | None:
    if frame is not None:
        frame = frame.reformat(format=pixels)
        frame.pts = number
    return frame


def _stamp(packet: bytes) -> int:
    return int(struct.unpack_from(">I", packet, 4)[0])


def _stamped(packet: bytes, first: int) -> bytes:
    """The packet, with a timestamp that begins again at 0 after some pictures."""
    stamp = (_stamp(packet) - first - WRAP * TICKS) % 2**32
    return packet[:4] + struct.pack(">I", stamp) + packet[8:]


class Camera:
    """A server on loopback, for one connection after the other."""

    def __init__(self, footage: Footage) -> None:
        self._footage = footage
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"rtsp://127.0.0.1:{self._server.getsockname()[1]}/camera"
        self.playing = threading.Event()  # a connection asked for pictures
        self._connection: socket.socket | None = None
        self._to: tuple[str, int] | None = None  # where packets go by UDP
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Camera:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.hang_up()
        self._server.close()
        self._udp.close()

    def send(self, packets: Iterable[bytes]) -> None:
        """Send RTP packets to the present connection."""
        for packet in packets:
            if self._to is not None:
                self._udp.sendto(packet, self._to)
            elif self._connection is not None:
                self._connection.sendall(b"$\0" + struct.pack(">H", len(packet)) + packet)

    def hang_up(self) -> None:
        """End the present connection."""
        self.playing.clear()
        connection = self._connection
        if connection is not None:
            with suppress(OSError):  # the other side may have ended it
                connection.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:  # closed
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection, connection.makefile("rb") as requests:
                self._connection, self._to = connection, None
                for lines in _requests(requests):
                    connection.sendall(self._answer(lines))
                    if lines[0].startswith("PLAY"):
                        self.playing.set()
            self._connection = None

    def _answer(self, lines: Sequence[str]) -> bytes:
        """To a request, of its line and the headers."""
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        more, body = ["Session: 1"], ""
        if lines[0].startswith("DESCRIBE"):
            body = self._footage.description()
            more = ["Content-Type: application/sdp", f"Content-Length: {len(body)}"]
        if lines[0].startswith("SETUP"):
            port = re.search(r"client_port=(\d+)", headers["transport"])
            self._to = ("127.0.0.1", int(port[1])) if port else None
            own = self._udp.getsockname()[1]
            way = f"RTP/AVP;unicast;{port[0]};server_port={own}-{own + 1}" if port else "RTP/AVP/TCP;interleaved=0-1"
            more.append(f"Transport: {way}")
        return "\r\n".join(["RTSP/1.0 200 OK", f"CSeq: {headers['cseq']}", *more, "", body]).encode()


def _requests(stream: Any) -> Iterator[list[str]]:
    """The lines of each, until the connection ends; reports that are sent between them are left out."""
    while True:
        try:
            first = stream.read(1)
            if first == b"$":
                stream.read(struct.unpack(">xH", stream.read(3))[0])
                continue
            lines = [(first + stream.readline()).decode().strip()]
            while line := stream.readline().strip():
                lines.append(line.decode())
        except (OSError, struct.error):
            return
        if not lines[0]:
            return
        yield lines
