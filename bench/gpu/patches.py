"""Patches at LODs between the levels, by the hardware's trilinear filter: what they cost, and what a picture gains.

python -m foveate.bench.gpu.patches sample_videos/*.mp4 --out gpu_patches.json

``fractional`` and ``whole``: device time of 273 patches of a 1920x1080 picture at real-valued places, at LODs between 0
and 4 and at whole ones; ``torch``: the same by the differentiable samples of foveate.pipeline.learned on the card. The
PSNR is that of a picture covered evenly by tokens, enlarged bilinearly: at the finest LOD that the budget allows, and
at the finest whole one. Needs torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.clips.footage import read_footage
from foveate.bench.entry import Out, check_folders, run_module
from foveate.bench.gpu.launches import launch_times, percentiles
from foveate.bench.gpu.scene import HEIGHT, WIDTH
from foveate.bench.records.table import standard_error
from foveate.bench.records.writing import clip_record, hand_out, origin
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.textures import Device, Texture
from foveate.pipeline.selection import PATCH

_TOKENS: Final = 273
_BUDGETS: Final = (64, 128, 273, 512, 1024)
_STEPS: Final = 256  # the filter's weights between two levels
_TOP: Final = 5  # levels
_WARM, _CALLS = 5, 50
_DELAY: Final = 1 << 30
_CLOSE: Final = 1e-2  # of [0, 1]: weights of 8 bits in three directions, and half floats
_SEED: Final = 4


def gpu_patches(
    files: Annotated[
        Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Videos, whose first frames are covered.")
    ],
    out: Out = None,
) -> None:
    """Measure the time of patches at 1080p, and the PSNR of tokens at fractional LODs."""
    check_folders(out=out)
    say = standard_error().print
    with Device() as device:
        stream = device.stream()
        record: dict[str, Any] = {**origin(), "command": "gpu_patches", "card": device.name, "tokens": _TOKENS}
        record["clips"] = [clip_record(Clip(Path(file).stem, Path(file)), 1) for file in files]
        record["times"] = _times(device, stream)
        for name, times in record["times"].items():
            say(f"{_TOKENS} patches, {name}: {times['p50_ms']:.4f} ms")
        record["cases"] = [
            _case(device, stream, Path(file), budget, whole)
            for file in files
            for budget in _BUDGETS
            for whole in (False, True)
        ]
        for case in record["cases"]:
            say(f"{case['name']}: LOD {case['lod']:.3f}, {case['tokens']} tokens, {case['psnr_luma']:.2f} dB")
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
    for _ in range(_WARM + _CALLS):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        before.record()
        call()
        after.record()
        torch.cuda.synchronize()
        times.append(float(before.elapsed_time(after)))
    return times


def _case(device: Device, stream: Stream, file: Path, budget: int, whole: bool) -> dict[str, Any]:
    luma = read_footage(file, 1).pictures[0].luma
    lod, (rows, columns) = finest(luma.shape, budget, whole)
    reach = PATCH * 2**lod
    row, column = np.indices((rows, columns)).reshape(2, -1) + 0.5
    height, width = luma.shape
    points = np.stack([column * reach / width, row * reach / height, np.full_like(row, lod)], axis=1).astype(np.float32)
    with Texture(device, stream, (height, width), components=1) as texture:
        texture.update(np.ascontiguousarray(luma[..., None]))
        patches = texture.patches(points).host()[:, 0, ..., 0]
    samples = patches.reshape(rows, columns, PATCH, PATCH).swapaxes(1, 2).reshape(rows * PATCH, columns * PATCH)
    shown = 255 * enlarged(samples, luma.shape, 2**lod)
    error = float(np.mean((shown - luma) ** 2))
    name = f"{file.stem}, {budget} tokens, {'whole LODs' if whole else 'between LODs'}"
    return {"name": name, "lod": lod, "tokens": rows * columns, "psnr_luma": 10 * np.log10(255**2 / error)}


def finest(shape: tuple[int, ...], budget: int, whole: bool) -> tuple[float, tuple[int, int]]:
    """The finest LOD at which at most ``budget`` tokens cover ``shape``, and their rows and columns."""
    step = _STEPS if whole else 1
    for part in range(0, 16 * _STEPS, step):
        lod = part / _STEPS
        rows, columns = (int(np.ceil(size / (PATCH * 2**lod))) for size in shape)
        if rows * columns <= budget:
            return lod, (rows, columns)
    raise RedCheckError(f"no LOD covers {shape} with {budget} tokens")


def enlarged(samples: NDArray[np.float32], shape: tuple[int, ...], scale: float) -> NDArray[np.float64]:
    """``samples`` enlarged bilinearly, their centres aligned, and cut to ``shape``."""
    grown = samples.astype(np.float64)
    for axis in (0, 1):
        at = np.clip((np.arange(shape[axis]) + 0.5) / scale - 0.5, 0, samples.shape[axis] - 1)
        low = np.minimum(at.astype(np.intp), samples.shape[axis] - 1)
        high = np.minimum(low + 1, samples.shape[axis] - 1)
        part = (at - low).reshape((-1, 1) if axis == 0 else (1, -1))
        grown = np.take(grown, low, axis) * (1 - part) + np.take(grown, high, axis) * part
    return grown


if __name__ == "__main__":
    run_module(gpu_patches)
