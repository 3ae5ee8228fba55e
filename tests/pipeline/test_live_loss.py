"""A transport stream by UDP of which datagrams are lost."""

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
from foveate.bench.speed.lossy import LossySender, free_port
from foveate.pipeline import open_stream

RATE = 25
INTERVAL = 10  # frames from keyframe to keyframe


@pytest.fixture
def lossy(tmp_path: Path) -> Iterator[tuple[LossySender, str, set[int]]]:
    """The sender, the address to read at, and checksums of all pictures as they are without loss."""
    path = tmp_path / "camera.ts"
    encode(path, moving(), Fraction(RATE), {"bf": "0", "g": str(INTERVAL), "crf": "20", "x264-params": "scenecut=0"})
    with av.open(str(path)) as container:
        sums = {checksum(frame.to_ndarray()[:240]) for frame in container.decode(video=0)}
    port = free_port()
    sender = LossySender(path, port, RATE, 0.05)
    yield sender, f"udp://127.0.0.1:{port}", sums
    sender.close()


def moving() -> Iterator[av.VideoFrame]:
    """Noise, so that a picture takes many datagrams, which moves."""
    noise = np.random.default_rng(1).integers(0, 256, (60, 90, 3)).astype(np.uint8).repeat(4, 0).repeat(4, 1)
    for number in range(50):
        yield colour_frame(np.ascontiguousarray(noise[:, 40 - abs(number - 25) : 360 - abs(number - 25)]))


def checksum(luma: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(luma))


def test_what_is_lost_is_over_at_the_next_keyframe(lossy: tuple[LossySender, str, set[int]]) -> None:
    check_loss(lossy, "cpu")


def check_loss(lossy: tuple[LossySender, str, set[int]], engine: Literal["cpu", "cuda"]) -> None:
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
