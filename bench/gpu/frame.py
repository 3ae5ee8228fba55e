"""Device time of one frame, decoded picture to tokens, at 1080p: the whole graph, and kernel by kernel.

python -m foveate.bench.gpu.frame sample_videos/bunny.mp4 --out gpu_frame.json
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from tyro.conf import Positional, arg

from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import percentiles
from foveate.bench.gpu.scene import HEIGHT, WIDTH, Scene, open_scene
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.settings import Settings

_WARM: Final = 40
_FRAMES: Final = 400
_KERNEL_FRAMES: Final = 40
_COPIED: Final = 1 << 30  # bytes
_NEVER: Final = 1_000_000


def gpu_frame(
    clip: Annotated[Positional[str], arg(metavar="FILE", help="A video file, whose first frame is the scene.")],
    out: Out = None,
) -> None:
    """Measure the device time of a steady frame with a tenth of the tiles changed, and of a keyframe."""
    record = new_record("gpu_frame", out, width=WIDTH, height=HEIGHT)
    with Device() as device:
        record["card"] = device.name
        record["copy_gb_per_s"] = copy_bandwidth(device)
        say(f"{device.name}: copies {record['copy_gb_per_s']:.0f} GB/s, read and written")
        record["cases"] = [
            _case(device, level, memory, Path(clip), record["copy_gb_per_s"])
            for level in (2, 0)
            for memory in ("frame", "stream")
        ]
    hand_out(record, out)


def copy_bandwidth(device: Device) -> float:
    """GB per second of a large copy on the device, bytes read and bytes written together."""
    from pycuda import driver

    stream, memory = device.stream(), Memory(device)
    try:
        source, target = (memory.array(name, (_COPIED,), np.uint8, stream) for name in ("source", "target"))
        times = [
            _between(device, stream, lambda: driver.memcpy_dtod_async(target.pointer, source.pointer, _COPIED, stream))
            for _ in range(10)
        ]
        return 2 * _COPIED / float(np.median(times[2:])) / 1e6
    finally:
        device.synchronize()
        memory.free()


def _between(device: Device, stream: Stream, call: Callable[[], None]) -> float:
    """Milliseconds of device time that what ``call`` enqueues takes."""
    before, after = device.event(), device.event()
    before.record(stream)
    call()
    after.record(stream)
    after.synchronize()
    return float(after.time_since(before))


def _case(device: Device, level: int, memory: str, clip: Path, bandwidth: float) -> dict[str, Any]:
    name = f"analysis level {level}, memory {memory}"
    changes: dict[str, Any] = {"analysis_level": level, "allocation": {"memory": memory}}
    record: dict[str, Any] = {"name": name, "analysis_level": level, "memory": memory}
    for kind, interval in (("steady", _NEVER), ("keyframe", 1)):
        settings = Settings.model_validate({**changes, "change": {"keyframe_interval": interval}})
        with open_scene(device, settings, clip) as scene:
            record[kind] = _whole(scene, kind == "keyframe")
            record[kind]["kernels"] = _kernels(scene, level, bandwidth)
            record[kind]["device_mib"] = (
                sum(size for _, size in (*scene.pixels.report(), *scene.cascade.report())) / 2**20
            )
        say(f"{name}, {kind}: {record[kind]['p50_ms']:.4f} ms, {record[kind]['tokens']} tokens")
        for kernel in record[kind]["kernels"]:
            say(
                f"    {kernel['name']:15} {kernel['us']:7.1f} us  {kernel['bytes'] / 1e6:7.2f} MB at least"
                f"  {kernel['gb_per_s']:7.1f} GB/s, {kernel['of_copy']:.1%} of a copy's"
            )
    return record


def _whole(scene: Scene, keyframe: bool) -> dict[str, Any]:
    """The graph's device time, frame after frame without a pause. Checked before it is timed."""
    times, selection = scene.graph_times(_WARM, _FRAMES, keyframe)
    return {
        **percentiles(times),
        "tokens": len(selection),
        "changed": selection.changed,
        "recomputed": selection.recomputed,
    }


def _kernels(scene: Scene, level: int, bandwidth: float) -> list[dict[str, Any]]:
    """Each step's median device time, launched one by one behind other work, so that none waits for the host.

    The time between two events has one or two microseconds of its own.
    """
    steps = scene.work.steps
    memory = Memory(scene.device)
    delay = memory.array("delay", (2 * _COPIED,), np.uint8, scene.stream)
    times = []
    try:
        for index in range(_KERNEL_FRAMES):
            number = (index + 1) % 2
            events = [scene.device.event() for _ in range(len(steps) + 1)]
            delay.fill(0, scene.stream)
            scene.pixels.input.upload(number, scene.stream)
            events[0].record(scene.stream)
            for step, event in zip(steps, events[1:], strict=True):
                step.enqueue(scene.stream)
                event.record(scene.stream)
            scene.cascade.fetch(number, scene.stream)
            scene.stream.synchronize()
            times.append([float(after.time_since(before)) for before, after in pairwise(events)])
    finally:
        scene.device.synchronize()
        memory.free()
    selection = scene.selection(0)
    written = 1.0 if selection.keyframe else selection.changed
    rows = zip((type(step).__name__ for step in steps), np.median(times, axis=0).tolist(), strict=True)
    return [_row(name, ms, least_bytes(name, written, level), bandwidth) for name, ms in rows]


def _row(name: str, milliseconds: float, size: float, bandwidth: float) -> dict[str, Any]:
    rate = size / milliseconds / 1e6
    return {"name": name, "us": 1000 * milliseconds, "bytes": size, "gb_per_s": rate, "of_copy": rate / bandwidth}


def least_bytes(name: str, written: float, level: int) -> float:
    """Bytes that a step must read and write at least, each once, with this share of tiles written (4:2:0)."""
    geometry = Geometry(WIDTH, HEIGHT)
    rows, columns = geometry.grid
    cells, pixels = rows * columns, WIDTH * HEIGHT
    levels = sum(4 * (16 >> level) ** 2 for level in range(1, 5)) + 2 * sum(
        4 * (16 >> level) ** 2 for level in (2, 3, 4)
    )
    stacked = 4 / 3 * 2 * (12 * (16 >> level) ** 2 + 4 * 256)  # half floats: local channels, and the RGB pyramid
    per_cell = {
        "Write": written * (2 * 1.5 * 256 + levels + 4),  # planes read and written, levels, motion
        "LeafErrors": written * (1.5 * 256 + levels + 4 * 4),
        "LocalChannels": written * (levels + 5 * 4),
        "Layers": written * (levels + stacked),
        "GridLayers": 28 * (4 + 2),
        "EdgeDistance": 2 * 4 + 4,
        "Compare": written * (2 * 1.5 * 256 + 4),
        "FlowSearch": 0.0 if written == 1 else written * (2 * (4 * 4 + 4) + 3 * 4),
        "Carry": 2 * 8 * 4 + 7 * 4 + 4 * 4 + 3 * 4 + 3 * 4 + 4 * 4 + 2 * 5 * 4,  # maps, channels, errors, scores, flow
        "Clusters": 3 * 4 + 2 * 5 * 4 + 3 * 4 if written == 1 else 0,
        "RateDistortion": 4 + 1 + 0.25 + 0.5,
        "Emit": 3 * 4 + 4 + 1,
    }
    return 2 * 1.5 * pixels if name == "Change" else per_cell.get(name, 0.0) * cells


if __name__ == "__main__":
    run_module(gpu_frame)
