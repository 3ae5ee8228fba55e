"""Memory over many reconnections, each with a decoder of its own, which must stay as it is.

python -m foveate.bench.gpu.reconnects sample_videos/bunny.mp4 --out gpu_reconnects.json
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.records.table import standard_error
from foveate.bench.records.writing import hand_out, origin
from foveate.bench.speed.paced import PacedFeed, camera_clip, open_paced
from foveate.bench.speed.resident import resident
from foveate.cuda.driver.device import Device
from foveate.pipeline.settings import LiveSettings, Settings

_FRAMES: Final = 30  # of each connection
_MOST: Final = 16.0  # MiB that the host's memory may grow by, from a fifth of the way to the end
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
    """Lose and find a camera again and again, and watch the memory of this process and of the card."""
    check_folders(out=out)
    check_least(_SAMPLES, times=times)
    width, height = map(int, size.split("x"))
    record: dict[str, Any] = {**origin(), "command": "gpu_reconnects", "times": times, "size": size, "engine": engine}
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder, ExitStack() as stack:
        device = stack.enter_context(Device()) if engine == "cuda" else None
        if device is not None:
            record["card"] = device.name
        clip = Path(folder) / "camera.ts"
        camera_clip(Path(file), clip, (width, height), _FRAMES, 30)
        record["samples"] = _watch(device, clip, Settings(engine=engine, live=_PATIENT), times)
    for sample in record["samples"]:
        standard_error().print(f"{sample['connections']:6} connections: {_summary(sample)}")
    early, last = record["samples"][_SAMPLES // 5], record["samples"][-1]
    record["growth_mib"] = {name: last[name] - early[name] for name in last if name.endswith("_mib")}
    hand_out(record, out)
    if record["growth_mib"]["host_mib"] > _MOST or record["growth_mib"].get("device_mib", 0.0) > _ONE:
        raise RedCheckError(f"memory grows by so many MiB: {record['growth_mib']}")


def _watch(device: Device | None, clip: Path, settings: Settings, times: int) -> list[dict[str, float]]:
    """Both memories, evenly over the connections."""
    samples: list[dict[str, float]] = []
    with open_paced(partial(PacedFeed, clip, None, 0.0), settings) as stream:
        for selection in stream:
            connections = selection.index // _FRAMES + 1
            if selection.index % _FRAMES == _FRAMES - 1 and connections * _SAMPLES >= times * (len(samples) + 1):
                samples.append({"connections": connections, "host_mib": resident()})
                if device is not None:
                    free, total = device.memory()
                    samples[-1]["device_mib"] = (total - free) / 2**20
            if connections > times:
                break
    return samples


def _summary(sample: dict[str, float]) -> str:
    return ", ".join(f"{name.removesuffix('_mib')} {value:.1f} MiB" for name, value in sample.items() if "_mib" in name)


if __name__ == "__main__":
    run_module(gpu_reconnects)
