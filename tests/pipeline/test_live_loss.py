"""A transport stream by UDP of which datagrams are lost."""

from __future__ import annotations

import random
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import av
import numpy as np
import pytest

from foveate.bench.clips.encoding import colour_frame, encode
from foveate.pipeline import open_stream

DATAGRAM = 7 * 188  # bytes
RATE = 25
INTERVAL = 10  # frames from keyframe to keyframe


class Sender:
    """Sends a file again and again, each picture when it is due, and loses a share of the datagrams."""

    def __init__(self, path: Path, port: int, share: float) -> None:
        self.share = share
        self.lost = 0
        self._path, self._target = path, ("127.0.0.1", port)
        self._random = random.Random(5)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def write(self, data: bytes) -> int:
        """What the muxer calls."""
        for begin in range(0, len(data), DATAGRAM):
            if self._random.random() < self.share:
                self.lost += 1
            else:
                self._socket.sendto(data[begin : begin + DATAGRAM], self._target)
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
                        if packet.size and not self._stop.wait(max(0.0, begin + number / RATE - time.monotonic())):
                            packet.pts = packet.dts = number * 90_000 // RATE
                            packet.time_base, packet.stream = stream.time_base, stream
                            number += 1
                            out.mux(packet)


@pytest.fixture
def lossy(tmp_path: Path) -> Iterator[tuple[Sender, str, set[int]]]:
    """The sender, the address to read at, and checksums of all pictures as they are without loss."""
    path = tmp_path / "camera.ts"
    encode(path, moving(), Fraction(RATE), {"bf": "0", "g": str(INTERVAL), "crf": "20", "x264-params": "scenecut=0"})
    with av.open(str(path)) as container:
        sums = {checksum(frame.to_ndarray()[:240]) for frame in container.decode(video=0)}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    sender = Sender(path, port, 0.05)
    yield sender, f"udp://127.0.0.1:{port}", sums
    sender.end()


def moving() -> Iterator[av.VideoFrame]:
    """Noise, so that a picture takes many datagrams, which moves."""
    noise = np.random.default_rng(1).integers(0, 256, (60, 90, 3)).astype(np.uint8).repeat(4, 0).repeat(4, 1)
    for number in range(50):
        yield colour_frame(np.ascontiguousarray(noise[:, 40 - abs(number - 25) : 360 - abs(number - 25)]))


def checksum(luma: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(luma))


def test_what_is_lost_is_over_at_the_next_keyframe(lossy: tuple[Sender, str, set[int]]) -> None:
    check_loss(lossy, "cpu")


def check_loss(lossy: tuple[Sender, str, set[int]], engine: Literal["cpu", "cuda"]) -> None:
    sender, address, whole = lossy
    with open_stream(address, budget=40, engine=engine, live={"connect_timeout": 20.0}) as stream:
        assert stream.info.decoded_on_cpu is None
        seen, damaged = [], 0
        for selection in stream:
            assert stream.frame is not None
            seen.append(selection.index)
            damaged += checksum(stream.frame.luma) not in whole
            if len(seen) == 100:
                break
        assert sender.lost > 5
        assert damaged > 0
        assert stream.status is not None
        assert (stream.status.state, stream.status.connections) == ("streaming", 1)
        sender.share = 0.0
        behind = time.monotonic() + 1.0  # what was on its way
        for _ in stream:
            if time.monotonic() > behind:
                break
        for _, _ in zip(range(INTERVAL), stream, strict=False):
            pass
        for _, _ in zip(range(3 * INTERVAL), stream, strict=False):
            assert stream.frame is not None
            assert checksum(stream.frame.luma) in whole
