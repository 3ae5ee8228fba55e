"""A sender of a transport stream by UDP that loses a share of its datagrams."""

import random
import socket
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Final

import av

DATAGRAM: Final = 7 * 188  # bytes
_TICKS: Final = 90_000  # a second
_BURST: Final = 16  # datagrams, between which the sender rests: the receiver's buffer holds about 90
_REST: Final = 0.001  # seconds


class LossySender:
    """Sends a file without B-frames again and again, each picture when it is due, to a port of this machine."""

    def __init__(self, path: Path, port: int, rate: int, share: float) -> None:
        """``rate``: pictures a second. ``share`` of the datagrams, 0 to 1, is lost, and can be changed meanwhile."""
        self.share = share
        self.sent = self.lost = 0  # datagrams
        self._path, self._target, self._rate = path, ("127.0.0.1", port), rate
        self._random = random.Random(5)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send no more."""
        self._stop.set()
        self._thread.join()

    def write(self, data: bytes) -> int:
        """What the muxer calls."""
        for begin in range(0, len(data), DATAGRAM):
            self.sent += 1
            if self._random.random() < self.share:
                self.lost += 1
            else:
                self._socket.sendto(data[begin : begin + DATAGRAM], self._target)
            if self.sent % _BURST == 0:
                time.sleep(_REST)
        return len(data)

    def _run(self) -> None:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as self._socket,
            av.open(self, "w", format="mpegts", options={"flush_packets": "1"}) as out,
        ):
            stream, number, begin = None, 0, time.monotonic()
            while not self._stop.is_set():
                with av.open(str(self._path)) as container:
                    stream = stream or out.add_stream_from_template(container.streams.video[0])
                    for packet in container.demux(video=0):
                        due = begin + number / self._rate
                        if packet.size and not self._stop.wait(max(0.0, due - time.monotonic())):
                            packet.pts = packet.dts = number * _TICKS // self._rate
                            packet.time_base, packet.stream = stream.time_base or Fraction(1, _TICKS), stream
                            number += 1
                            out.mux(packet)


def free_port() -> int:
    """A port for UDP that nobody uses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port
