"""What patches at LODs between the levels cost by the hardware's trilinear filter.

python -m foveate.bench.gpu.patches --out gpu_patches.json

``fractional`` and ``whole``: device time of 273 patches of a 1920x1080 picture at real-valued places, at LODs between 0
and 4 and at whole ones; ``torch``: the same by the differentiable samples of foveate.pipeline.learned on the card,
which they are checked against. What a picture gains from such LODs is in bench.cases.fractional_lods. Needs torch.
"""

from typing import Any, Final

import numpy as np

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import launch_times, percentiles
from foveate.bench.gpu.scene import HEIGHT, WIDTH
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.textures import Device, Texture

_TOKENS: Final = 273
_TOP: Final = 5  # levels
_WARM, _CALLS = 5, 50
_DELAY: Final = 1 << 30  # bytes to fill: time for the host to enqueue what is measured
_CLOSE: Final = 1e-2  # of [0, 1]: weights of 8 bits in three directions, and half floats
_FILLS: Final = 20  # torch enqueues many small kernels
_SEED: Final = 4


def gpu_patches(out: Out = None) -> None:
    """Measure the time of patches at 1080p."""
    record = new_record("gpu_patches", out, tokens=_TOKENS)
    with Device() as device:
        record["card"] = device.name
        record["cases"] = [{"name": name, **times} for name, times in _times(device, device.stream()).items()]
    for case in record["cases"]:
        say(f"{_TOKENS} patches, {case['name']}: {case['p50_ms']:.4f} ms")
    hand_out(record, out)


def _times(device: Device, stream: Stream) -> dict[str, dict[str, Any]]:
    import torch

    from foveate.pipeline.learned import picture_levels, sample_patches

    rng = np.random.default_rng(_SEED)
    padded = -(-HEIGHT // 32) * 32
    picture = torch.from_numpy(rng.random((padded, WIDTH, 4), np.float32)).cuda()
    places = rng.random((_TOKENS, 3), np.float32) * np.array([WIDTH, padded, _TOP - 1], np.float32)
    whole = np.concatenate([places[:, :2], np.rint(places[:, 2:])], axis=1)
    levels = picture_levels(picture.permute(2, 0, 1)[None].contiguous(), _TOP - 1)
    x, y, lod = (torch.from_numpy(places[:, axis].copy()).cuda()[None] for axis in range(3))
    memory = Memory(device)
    delay = memory.array("delay", (_DELAY,), np.uint8, stream)
    with Texture(device, stream, (padded, WIDTH), levels=_TOP) as texture:
        texture.update(picture)
        given_points = {
            name: torch.from_numpy(each / np.array([WIDTH, padded, 1], np.float32)).cuda()
            for name, each in (("fractional", places), ("whole", whole))
        }
        expected = sample_patches(levels, x, y, lod)[0].permute(0, 2, 3, 1)
        wrong = float((torch.from_dlpack(texture.patches(given_points["fractional"]))[:, 0] - expected).abs().max())
        if not wrong <= _CLOSE:
            raise RedCheckError(f"patches are off by up to {wrong:g}")
        ours = {name: _patch_times(texture, given, delay) for name, given in given_points.items()}
    memory.free()
    theirs = _torch_times(lambda: sample_patches(levels, x, y, lod))
    return {name: percentiles(times[_WARM:]) for name, times in {**ours, "torch": theirs}.items()}


def _patch_times(texture: Texture, points: Any, delay: DeviceArray) -> list[float]:
    def launch() -> None:
        texture.patches(points)

    stream = texture.stream
    return launch_times(texture.device, stream, lambda: delay.fill(0, stream), launch, _WARM + _CALLS)


def _torch_times(call: Any) -> list[float]:
    import torch

    times = []
    delay = torch.empty(_DELAY, dtype=torch.uint8, device="cuda")
    for _ in range(_WARM + _CALLS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        for _ in range(_FILLS):
            delay.fill_(0)
        before.record()
        call()
        after.record()
        torch.cuda.synchronize()
        times.append(float(before.elapsed_time(after)))
    return times


if __name__ == "__main__":
    run_module(gpu_patches)
