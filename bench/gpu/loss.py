"""A camera by UDP of which datagrams are lost: no crash, and whole pictures again from the next keyframe on.

python -m foveate.bench.gpu.loss sample_videos/bunny.mp4 --seconds 600 --out gpu_loss.json
"""

import tempfile
import time
import zlib
from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import av
from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module, size_of
from foveate.bench.gpu.launches import card_name
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.bench.speed.lossy import LossySender, free_port
from foveate.bench.speed.paced import camera_clip
from foveate.bench.speed.resident import resident
from foveate.pipeline.settings import LiveSettings, Settings
from foveate.pipeline.settings_errors import check_count
from foveate.pipeline.stream import Stream, open_stream

_RATE: Final = 30  # pictures a second
_LENGTH: Final = 300  # pictures of the clip
_INTERVAL: Final = 60  # pictures from keyframe to keyframe; see camera_clip
_LOSING: Final = 10.0  # seconds of loss between two looks at what comes without
_UNDER_WAY: Final = 1.0  # seconds in which what was sent before arrives
_WHOLE: Final = 30  # pictures that are looked at then
_MOST: Final = 16.0  # MiB that the host's memory may grow by, from a fifth of the way to the end


def gpu_loss(
    file: Annotated[Positional[str], arg(metavar="FILE", help="What the camera sees; it is scaled and encoded anew.")],
    out: Out = None,
    seconds: Annotated[int, arg(metavar="N", help="How long.")] = 600,
    percent: Annotated[int, arg(metavar="N", help="Of the datagrams are lost, but for moments of none.")] = 5,
    size: Annotated[str, arg(metavar="WxH", help="Of the pictures.")] = "1920x1080",
    engine: Annotated[Literal["cuda", "cpu"], arg(help="What decodes, and chooses the tokens.")] = "cuda",
) -> None:
    """Read a camera by UDP on loopback, of which datagrams are lost."""
    check_count("seconds", seconds)
    check_count("percent", percent, 1, 100)
    record = new_record("gpu_loss", out, seconds=seconds, percent=percent, size=size, engine=engine)
    pixels = size_of(size)
    record["card"] = card_name() if engine == "cuda" else None
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        clip = Path(folder) / "camera.ts"
        camera_clip(Path(file), clip, pixels, _LENGTH, _RATE)
        settings = Settings(engine=engine, live=LiveSettings(connect_timeout=60.0))
        record |= _through(clip, settings, seconds, percent / 100)
    say(
        f"{record['lost']} of {record['sent']} datagrams lost in {seconds} s: {record['frames']} frames, "
        f"{record['damaged']} damaged, {record['connections']} connection; {record['looks']} times without loss, "
        f"{record['unrecovered']} of {record['looks'] * _WHOLE} pictures behind the next keyframe not whole; memory "
        f"grown by {record['growth_mib']:.1f} MiB"
    )
    hand_out(record, out)
    if record["unrecovered"] or record["connections"] != 1 or record["growth_mib"] > _MOST:
        raise RedCheckError("pictures stay damaged, the connection was lost, or memory grows")


def _through(clip: Path, settings: Settings, seconds: int, share: float) -> dict[str, Any]:
    """Counts over so many seconds. Raises RedCheckError where the CPU decodes for the card."""
    whole = _checksums(clip)
    port = free_port()
    with (
        closing(LossySender(clip, port, _RATE, share)) as sender,
        open_stream(f"udp://127.0.0.1:{port}", settings) as stream,
    ):
        if stream.info.decoded_on_cpu is not None:
            raise RedCheckError(f"decoded on the CPU: {stream.info.decoded_on_cpu}")
        begin, memory, unrecovered = time.monotonic(), [], 0
        while time.monotonic() < begin + seconds:
            _read_until(stream, time.monotonic() + min(_LOSING, seconds))
            sender.share = 0.0
            unrecovered += _look(stream, whole)
            sender.share = share
            memory.append(resident())
        status = stream.status
        assert status is not None
        return {
            "frames": status.received,
            "dropped": status.dropped,
            "damaged": stream.damage.frames,
            "connections": status.connections,
            "sent": sender.sent,
            "lost": sender.lost,
            "looks": len(memory),
            "unrecovered": unrecovered,
            "memory_mib": memory,
            "growth_mib": memory[-1] - memory[len(memory) // 5],
        }


def _look(stream: Stream, whole: set[int]) -> int:
    """How many pictures behind the next keyframe are not whole, with nothing lost any more."""
    _read_until(stream, time.monotonic() + _UNDER_WAY)
    for _ in islice(stream, _INTERVAL):
        pass
    broken = 0
    for _ in islice(stream, _WHOLE):
        assert stream.frame is not None
        broken += _checksum(stream.frame.luma) not in whole
    return broken


def _read_until(stream: Iterable[Any], moment: float) -> None:
    for _ in stream:
        if time.monotonic() > moment:
            return


def _checksums(clip: Path) -> set[int]:
    """Of the pictures as they are without loss."""
    with av.open(str(clip)) as container:
        return {_checksum(frame.to_ndarray()[: frame.height]) for frame in container.decode(video=0)}


def _checksum(luma: Any) -> int:
    return zlib.crc32(luma.tobytes())


if __name__ == "__main__":
    run_module(gpu_loss)
