"""What a frame costs by where its tokens are chosen: on the card, or by the CPU engine from the pixels of the card.

python -m foveate.bench.gpu.strategies sample_videos/bunny.mp4 --out gpu_strategies.json

For each strategy, the linear scorer and regions: milliseconds from one Selection to the next of a file that the
hardware decodes, both ways in turns. What has no kernels is chosen on the CPU both times, and measured once. The graph
is the device time of a steady frame at 1080p, as in bench.gpu.frame.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, Final
from unittest.mock import patch

import numpy as np
from tyro.conf import Positional, arg

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import percentiles
from foveate.bench.gpu.scene import open_scene
from foveate.bench.records.table import say
from foveate.bench.records.writing import clip_record, hand_out, new_record
from foveate.cuda import engine
from foveate.cuda.driver.device import Device
from foveate.cuda.kernel_support import missing_kernels
from foveate.pipeline import open_stream
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings

_TURNS: Final = 2
_APART: Final = 0.05  # share of tokens: each way has a flow of its own
_OPENING: Final = 20  # frames whose times do not count
_WARM, _FRAMES = 20, 200  # graphs
_NEVER: Final = 1_000_000
_WEIGHTS: Final = (
    "bias = 0.02\n[weights]\nedges = 0.3\nhighpass = 0.4\nmotion = 0.5\nsaliency = 0.4\nprev_relevance = 0.1\n"
)
_BOXES: Final = json.dumps(
    {
        "frame": 0,
        "regions": [{"name": "left", "box": [64, 64, 400, 500]}, {"name": "right", "box": [640, 96, 1100, 600]}],
    },
)
_STRATEGIES: Final = ("rate_distortion", "three_stage", "five_stage", "adaptive", "soft", "foveated", "cluster_first")
_IN_STREAM: Final = (
    "rate_distortion",
    "adaptive",
    "foveated",
)  # the others rank cells by error there, as adaptive does


def gpu_strategies(
    file: Annotated[Positional[str], arg(metavar="FILE", help="A video that the hardware decodes.")],
    out: Out = None,
) -> None:
    """Measure all strategies, some also with stream memory, the linear scorer, and two regions."""
    record = new_record("gpu_strategies", out)
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        wanted = cases(Path(folder))
        with Device() as device:
            record["card"] = device.name
            for name, settings in wanted.items():
                record["cases"].append(_case(device, name, settings, Path(file)))
        record["clip"] = clip_record(Clip(Path(file).stem, Path(file)), record["cases"][-1]["frames"])
    hand_out(record, out)


def cases(folder: Path) -> dict[str, dict[str, Any]]:
    """Settings by name; the files that they need are written to ``folder``."""
    weights, boxes = folder / "weights.toml", folder / "boxes.jsonl"
    weights.write_text(_WEIGHTS)
    boxes.write_text(_BOXES)
    allocations = {
        f"{strategy}, {memory}": {"strategy": strategy, "memory": memory}
        for strategy in _STRATEGIES
        for memory in ("frame", "stream")
        if memory == "frame" or strategy in _IN_STREAM
    }
    return {
        **{name: {"allocation": allocation} for name, allocation in allocations.items()},
        "linear scorer": {"score": {"scorer": "linear", "weights": str(weights)}},
        "two regions": {"regions": str(boxes)},
    }


def _case(device: Device, name: str, settings: dict[str, Any], clip: Path) -> dict[str, Any]:
    checked = Settings.model_validate({**settings, "change": {"keyframe_interval": _NEVER}})
    missing = missing_kernels(plan_stream(checked))
    intervals: dict[bool, list[float]] = {True: [], False: []}  # by whether the CPU chooses
    counts: dict[bool, list[int]] = {}
    for _ in range(_TURNS):
        for on_cpu in (True,) if missing else (False, True):
            counts[on_cpu] = _run(settings, clip, on_cpu, intervals[on_cpu])
    tokens = {on_cpu: float(np.mean(found)) for on_cpu, found in counts.items()}
    record: dict[str, Any] = {"name": name, "no_kernels": missing, "tokens": tokens[True], "frames": len(counts[True])}
    record["cpu"] = percentiles(intervals[True])
    said = f"{name}: {record['cpu']['p50_ms']:.3f} ms a frame chosen by the CPU"
    if not missing:
        if abs(tokens[False] - tokens[True]) > _APART * tokens[True]:
            raise RedCheckError(
                f"{name}: {tokens[False]:.1f} tokens a frame on the card, {tokens[True]:.1f} on the CPU"
            )
        record["card"] = percentiles(intervals[False])
        with open_scene(device, checked, clip) as opened:
            times, _ = opened.graph_times(_WARM, _FRAMES)
        record["graph"] = percentiles(times)
        said += f", {record['card']['p50_ms']:.3f} on the card, {record['graph']['p50_ms']:.4f} ms of device time"
    say(said)
    return record


def _run(settings: dict[str, Any], clip: Path, on_cpu: bool, intervals: list[float]) -> list[int]:
    """Tokens of each frame; appends the milliseconds from each Selection to the next."""
    said = {"return_value": "the CPU's is measured"} if on_cpu else {"side_effect": missing_kernels}
    counts, times = [], []
    with (
        patch.object(engine, "missing_kernels", **said),
        open_stream(str(clip), engine="cuda", **settings) as stream,
    ):
        if stream.info.decoded_on_cpu is not None:
            raise RedCheckError(f"{clip.name} was decoded on the CPU: {stream.info.decoded_on_cpu}")
        if (stream.engine.tokens_on_cpu is not None) != on_cpu:
            raise RedCheckError(f"tokens on the CPU: {stream.engine.tokens_on_cpu}")
        for selection in stream:
            times.append(time.perf_counter())
            counts.append(len(selection))
    intervals += (1000 * np.diff(times[_OPENING:])).tolist()
    return counts


if __name__ == "__main__":
    run_module(gpu_strategies)
