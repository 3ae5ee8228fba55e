"""What the texture library costs for 1, 8 and 32 pictures of 1920x1080 in one texture, per picture:

python -m foveate.bench.gpu.textures --out gpu_textures.json

``update``: all pictures, RGBA of uint8 on the card, written and their levels built; ``part``: a tenth of each picture;
``levels``: all levels from level 0; ``sample``: 273 points of each picture; all on the device's clock. ``upload`` is
``update`` from NumPy, ``video`` a frame of which a tenth changed, both by the host's clock. ``torch_levels``: the
levels by a chain of avg_pool2d of half floats. A call that takes an array returns once it was read, so these times hold
a wait. Needs torch.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import launch_times, percentiles
from foveate.bench.gpu.scene import HEIGHT, WIDTH
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.textures import Device, Texture, VideoTexture
from foveate.cuda.textures.mipmap_reference import next_level

_PICTURES: Final = (1, 8, 32)
_CALLS: Final = 30
_WARM: Final = 5
_UPLOADS: Final = 5
_POINTS: Final = 273
_PART: Final = (342, 608)  # rows and columns: a tenth of the picture
_AT: Final = {"top": 300, "left": 500}
_DELAY: Final = 1 << 30  # bytes to fill: time for the host to enqueue what is measured
_SEED: Final = 4
_CLOSE: Final = 2**-10  # values below 1 in half floats, two levels up: each is rounded by 2**-12


def gpu_textures(out: Out = None) -> None:
    """Measure updates, levels and samples of one, 8 and 32 pictures."""
    record = new_record("gpu_textures", out, width=WIDTH, height=HEIGHT, points=_POINTS)
    with Device() as device:
        record["card"] = device.name
        memory, stream = Memory(device), device.stream()
        delay = memory.array("delay", (_DELAY,), np.uint8, stream)
        for count in _PICTURES:
            case = {
                "name": f"{count} pictures",
                "pictures": count,
                **_case(device, stream, count, lambda: delay.fill(0, stream)),
            }
            case["torch_levels"] = _torch_levels(count)
            record["cases"].append(case)
            say(f"{count} pictures, ms a picture: " + ", ".join(_told(case)))
        record["video"] = _video(device, stream)
        say(f"a frame of a video of which a tenth changed: {record['video']['p50_ms']:.3f} ms by the host's clock")
        memory.free()
    hand_out(record, out)


def _told(case: dict[str, Any]) -> list[str]:
    return [f"{name} {case[name]['ms_per_picture']:.4f}" for name in case if name not in ("name", "pictures")]


def _case(device: Device, stream: Stream, count: int, delay: Callable[[], None]) -> dict[str, Any]:
    import torch

    rng = np.random.default_rng(_SEED)
    pictures = rng.integers(0, 256, (count, HEIGHT, WIDTH, 4), np.uint8)
    points = rng.random((count, _POINTS, 3), np.float32) * np.array([1, 1, 5], np.float32)
    on_card = torch.from_numpy(pictures).cuda()
    part, places = on_card[:, : _PART[0], : _PART[1]], torch.from_numpy(points).cuda()
    with Texture(device, stream, (HEIGHT, WIDTH), layers=count) as texture:
        texture.update(on_card)
        _check(texture, pictures)
        calls: dict[str, Callable[[], object]] = {
            "update": lambda: texture.update(on_card),
            "part": lambda: texture.update(part, **_AT),
            "levels": texture.rebuild,
            "sample": lambda: texture.sample(places),
        }
        found = {name: _per_picture(_device_times(device, stream, delay, call), count) for name, call in calls.items()}
        found["upload"] = _per_picture(_host_times(lambda: texture.update(pictures), stream, _UPLOADS), count)
    return found


def _check(texture: Texture, pictures: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    """The first and the last picture's levels 1 and 2."""
    levels = [texture.level(level).host() for level in (1, 2)]
    for layer in (0, len(pictures) - 1):
        wanted = (pictures[layer].astype(np.float32) / np.float32(255)).astype(np.float16)
        for found in levels:
            wanted = next_level(wanted)
            wrong = float(np.abs(found[layer].astype(np.float32) - wanted.astype(np.float32)).max())
            if not wrong <= _CLOSE:
                raise RedCheckError(f"layer {layer}, {found.shape[1]} rows: a texel is off by {wrong:g}")


def _device_times(device: Device, stream: Stream, delay: Callable[[], None], call: Callable[[], object]) -> list[float]:
    def launch() -> None:
        call()

    return launch_times(device, stream, delay, launch, _WARM + _CALLS)[_WARM:]


def _host_times(call: Callable[[], object], stream: Stream, count: int) -> list[float]:
    """Milliseconds of the host until each call's work is done."""
    times = []
    for _ in range(1 + count):
        begin = time.perf_counter()
        call()
        stream.synchronize()
        times.append(1000 * (time.perf_counter() - begin))
    return times[1:]


def _per_picture(times: list[float], count: int) -> dict[str, Any]:
    found = percentiles(times)
    return {**found, "ms_per_picture": found["p50_ms"] / count}


def _video(device: Device, stream: Stream) -> dict[str, Any]:
    rng = np.random.default_rng(_SEED)
    frames = np.broadcast_to(rng.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8), (2, HEIGHT, WIDTH, 3)).copy()
    top, left = _AT["top"], _AT["left"]
    frames[1, top : top + _PART[0], left : left + _PART[1]] ^= 255
    shown = 0

    def step() -> None:
        nonlocal shown
        shown ^= 1
        video.update(frames[shown])

    with Texture(device, stream, (HEIGHT, WIDTH)) as texture, VideoTexture(texture) as video:
        video.update(frames[0])
        return percentiles(_host_times(step, stream, _CALLS))


def _torch_levels(count: int) -> dict[str, Any]:
    """The levels above level 0 in torch, as far down as there are two texels."""
    import torch

    level = torch.rand(count, 4, HEIGHT, WIDTH, device="cuda").half()

    def build() -> None:
        made = level
        while min(made.shape[2:]) > 1:
            made = torch.nn.functional.avg_pool2d(made, 2)

    times = []
    for _ in range(_WARM + _CALLS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(1_000_000)
        start.record()
        build()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)))
    return _per_picture(times[_WARM:], count)


if __name__ == "__main__":
    run_module(gpu_textures)
