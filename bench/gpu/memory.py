"""Memory of a long stream on the GPU, which must stay as it is: host and device, over 20,000 frames.

python -m foveate.bench.gpu.memory sample_videos/pedestrians.mp4 --out gpu_memory.json
"""

import tempfile
from pathlib import Path
from typing import Annotated, Final

from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.clips.encoding import looped
from foveate.bench.entry import Out, run_module
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.bench.speed.resident import resident
from foveate.cuda.driver.device import Device
from foveate.pipeline import open_stream

_MOST: Final = 16.0  # MiB that the host's memory may grow by, from a tenth of the way to the end
_SAMPLES: Final = 20


def gpu_memory(
    file: Annotated[Positional[str], arg(metavar="FILE", help="Played again and again.")],
    out: Out = None,
    frames: Annotated[int, arg(metavar="N", help="Length of the stream.")] = 20_000,
) -> None:
    """Run one long stream and watch the memory of this process and of the card."""
    record = new_record("gpu_memory", out, frames=frames)
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder, Device() as device:
        record["card"] = device.name
        clip = Path(folder) / "long.mp4"
        once = looped(Path(file), clip, 1)
        looped(Path(file), clip, -(-frames // once))
        record["samples"] = watch(device, clip, frames)
    for sample in record["samples"]:
        say(f"{sample['frame']:6} frames: host {sample['host_mib']:.1f} MiB, device {sample['device_mib']:.1f} MiB")
    early, last = record["samples"][_SAMPLES // 10], record["samples"][-1]
    record["host_growth_mib"] = last["host_mib"] - early["host_mib"]
    record["device_growth_mib"] = last["device_mib"] - early["device_mib"]
    hand_out(record, out)
    if record["host_growth_mib"] > _MOST or record["device_growth_mib"] > 0:
        raise RedCheckError(
            f"memory grows: host {record['host_growth_mib']:.1f}, device {record['device_growth_mib']} MiB"
        )


def watch(device: Device, clip: Path, frames: int) -> list[dict[str, float]]:
    """Samples of both memories, evenly over the stream."""
    samples: list[dict[str, float]] = []
    step = frames // _SAMPLES
    with open_stream(str(clip), engine="cuda", source={"frames": frames}) as stream:
        for count, _ in enumerate(stream, start=1):
            if count % step == 0:
                free, total = device.memory()
                samples.append({"frame": count, "host_mib": resident(), "device_mib": (total - free) / 2**20})
    if len(samples) != _SAMPLES:
        raise RedCheckError(f"the stream ended after {len(samples)} of {_SAMPLES} samples")
    return samples


if __name__ == "__main__":
    run_module(gpu_memory)
