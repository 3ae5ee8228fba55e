"""What the process and the card hold over many reconnections, each with a decoder of its own: it must not grow.

python -m foveate.bench.gpu.reconnects sample_videos/bunny.mp4 --out gpu_reconnects.json
"""

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, check_least, run_module, size_of
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.bench.speed.paced import PacedFeed, camera_clip, open_paced
from foveate.bench.speed.resident import STEADY, growth, held
from foveate.cuda.driver.device import Device
from foveate.pipeline.settings import LiveSettings, Settings

_FRAMES: Final = 30  # of each connection
_ONE: Final = 64.0  # MiB of the card that one decoder may hold: a sample may be taken before or after it is made
_SAMPLES: Final = 10
_PATIENT: Final = LiveSettings(policy="every", retry_pause=0.5)


def gpu_reconnects(
    file: Annotated[Positional[str], arg(metavar="FILE", help="What the camera sees; it is scaled and encoded anew.")],
    out: Out = None,
    times: Annotated[int, arg(metavar="N", help="Connections.")] = 200,
    size: Annotated[str, arg(metavar="WxH", help="Of the pictures.")] = "1920x1080",
    engine: Annotated[Literal["cuda", "cpu"], arg(help="What chooses the tokens.")] = "cuda",
) -> None:
    """Lose and find a camera again and again, and watch what this process and the card hold."""
    record = new_record("gpu_reconnects", out, times=times, size=size, engine=engine)
    pixels = size_of(size)
    check_least(_SAMPLES, times=times)
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder, ExitStack() as stack:
        device = stack.enter_context(Device()) if engine == "cuda" else None
        if device is not None:
            record["card"] = device.name
        clip = Path(folder) / "camera.ts"
        camera_clip(Path(file), clip, pixels, _FRAMES, 30)
        record["samples"] = _watch(device, clip, Settings(engine=engine, live=_PATIENT), times)
    for sample in record["samples"]:
        say(f"{sample['connections']:6} connections: {_summary(sample)}")
    most = STEADY if device is None else {**STEADY, "device_mib": _ONE}
    grown = record["growth"] = growth(record["samples"], most)
    hand_out(record, out)
    if any(grown[name] > limit for name, limit in most.items()):
        raise RedCheckError(f"what is held grows: {grown}")


def _watch(device: Device | None, clip: Path, settings: Settings, times: int) -> list[dict[str, float]]:
    """What is held, evenly over the connections."""
    samples: list[dict[str, float]] = []
    with open_paced(partial(PacedFeed, clip, None, 0.0), settings) as stream:
        for selection in stream:
            connections = selection.index // _FRAMES + 1
            if selection.index % _FRAMES == _FRAMES - 1 and connections * _SAMPLES >= times * (len(samples) + 1):
                samples.append({"connections": connections, **held()})
                if device is not None:
                    free, total = device.memory()
                    samples[-1]["device_mib"] = (total - free) / 2**20
            if connections > times:
                break
    return samples


def _summary(sample: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in sample.items() if name != "connections")


if __name__ == "__main__":
    run_module(gpu_reconnects)
