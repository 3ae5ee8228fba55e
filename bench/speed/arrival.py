"""How long after the last packet of a picture a live source hands it to the decoder, over loopback.

python -m foveate.bench.speed.arrival --out arrival.json
"""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final

import av
import numpy as np
from tyro.conf import arg

from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.records.table import standard_error
from foveate.bench.records.writing import hand_out, origin
from foveate.bench.speed.lossy import DATAGRAM, free_port
from foveate.bench.speed.rtsp_camera import RATE, SIZE, TICKS, Camera, Footage
from foveate.pipeline.live.feed import LiveFeed
from foveate.pipeline.live.target import target_of
from foveate.pipeline.settings import LiveSettings, SourceSettings

_X264: Final = {"preset": "ultrafast", "g": str(RATE), "bf": "0"}
_X265: Final = {"preset": "ultrafast", "x265-params": f"bframes=0:keyint={RATE}:log-level=none"}
_CODECS: Final = {"h264": ("libx264", _X264), "hevc": ("libx265", _X265), "mjpeg": ("mjpeg", {"huffman": "default"})}
_LEARNT: Final = 120  # pictures after which it is known how they end
_BEGUN: Final = 20  # pictures that FFmpeg may have read on opening
_LIVE: Final = LiveSettings(policy="every")

_Send = Callable[[int], object]  # sends picture k


def arrival(
    out: Out = None,
    pictures: Annotated[int, arg(metavar="N", help="Of each source, 25 a second.")] = 300,
) -> None:
    """Send pictures by RTSP and UDP, and see when each is there as a whole."""
    check_folders(out=out)
    check_least(2 * _LEARNT, pictures=pictures)
    record: dict[str, Any] = {**origin(), "command": "arrival", "pictures": pictures, "late_ms": {}}
    for codec, (encoder, options) in _CODECS.items():
        footage = Footage(encoder, pictures, options)
        with Camera(footage) as camera:
            late = _lateness(camera.address, pictures, partial(_send, camera, footage), camera.playing)
        record["late_ms"] |= {f"rtsp {codec}, first": _middle(late[:100]), f"rtsp {codec}": _middle(late[_LEARNT:])}
        if codec == "h264":
            record["late_ms"]["mpegts by udp"] = _middle(_by_udp(footage, pictures)[_LEARNT:])
    for name, value in record["late_ms"].items():
        standard_error().print(f"{name:20} {value:6.1f} ms")
    hand_out(record, out)


def _send(camera: Camera, footage: Footage, number: int) -> None:
    camera.send(footage.packets[number])


def _middle(late: list[float]) -> float:
    return float(np.median(late)) * 1000


def _lateness(address: str, pictures: int, send: _Send, begin: threading.Event) -> list[float]:
    """Seconds for each picture, but for those that are there before the connection is open."""
    sent: list[float] = []

    def pace() -> None:
        begin.wait()
        start = time.monotonic()
        for number in range(pictures):
            time.sleep(max(0.0, start + number / RATE - time.monotonic()))
            send(number)
            sent.append(time.monotonic())

    sender = threading.Thread(target=pace, daemon=True)
    sender.start()
    late: list[float] = []
    with closing(LiveFeed(target_of(address, _LIVE), _LIVE, SourceSettings())) as feed:
        whole = (packet for packet in feed.packets() if packet.size)
        for number, _ in enumerate(islice(whole, pictures - 3)):  # the last ones wait for others
            now = time.monotonic()
            if number >= _BEGUN:
                late.append(max(0.0, now - sent[number]) if number < len(sent) else 0.0)
    sender.join()
    return late


def _by_udp(footage: Footage, pictures: int) -> list[float]:
    """The same of a transport stream."""
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:

        class Datagrams:
            def write(self, data: bytes) -> int:
                for at in range(0, len(data), DATAGRAM):
                    link.sendto(data[at : at + DATAGRAM], ("127.0.0.1", port))
                return len(data)

        with av.open(Datagrams(), "w", format="mpegts", options={"flush_packets": "1"}) as out:
            stream = out.add_stream("h264", rate=RATE)
            stream.width, stream.height = SIZE

            def send(number: int) -> None:
                packet = av.Packet(footage.coded[number])
                packet.pts = packet.dts = number * TICKS
                packet.time_base, packet.stream = Fraction(1, 90_000), stream
                out.mux(packet)

            begin = threading.Event()
            threading.Timer(1.0, begin.set).start()
            return _lateness(f"udp://127.0.0.1:{port}", pictures, send, begin)


if __name__ == "__main__":
    run_module(arrival)
