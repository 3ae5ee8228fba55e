"""The selection of one frame in plain torch, compiled, against the graph of the CUDA engine in the same run.

python -m foveate.bench.gpu.against_torch sample_videos/bunny.mp4 --out gpu_torch.json

The same planes, levels, errors, channels, scores, price search and tokens, over the whole picture each frame: torch has
no partial update that would cost less. ``plain``: nothing is compiled; ``called``: the compiled function is called for
each frame; ``replayed``: it is captured by hand into a CUDA graph first. Left out, in torch's favour: the flow search,
the fill of the last few tokens, ages, and the stack of 40 channels.
"""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any, Final

from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import percentiles, torch_times
from foveate.bench.gpu.scene import HEIGHT, WIDTH, open_scene, pictures
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.cuda.driver.device import Device
from foveate.pipeline.settings import Settings

_FRAMES: Final = 200
_WARM: Final = 20
_EQUAL: Final = 0.9  # share of the engine's tokens that torch must choose too: both do the same work


def gpu_torch(
    clip: Annotated[Positional[str], arg(metavar="FILE", help="A video file, whose first frame is the scene.")],
    out: Out = None,
) -> None:
    """Compare device time and wall-clock time per steady frame."""
    record = new_record("gpu_torch", out, width=WIDTH, height=HEIGHT)
    settings = Settings.model_validate({"change": {"keyframe_interval": 1_000_000}, "cache": {"enabled": False}})
    with Device() as device:
        record["card"] = device.name
        ours, chosen = _engine(device, settings, Path(clip))
    theirs, others, version = _torch(Path(clip))
    equal = len(chosen & others) / max(len(chosen), 1)
    if equal < _EQUAL:
        raise RedCheckError(f"torch chose {equal:.1%} of the engine's tokens")
    record |= {"torch": version, "equal_tokens": equal, "engine": ours, **theirs}
    say(f"{record['card']}: engine {ours['p50_ms']:.4f} ms a frame; torch chose {equal:.1%} of the same tokens")
    for way, summary in theirs.items():
        record[f"times_faster_than_{way}"] = times = summary["p50_ms"] / ours["p50_ms"]
        say(f"    torch, {way}: {summary['p50_ms']:.3f} ms, the engine is {times:.1f} times faster")
    hand_out(record, out)


Tokens = set[tuple[int, int, int]]


def _engine(device: Device, settings: Settings, clip: Path) -> tuple[dict[str, Any], Tokens]:
    with open_scene(device, settings, clip) as scene:
        times, selection = scene.graph_times(_WARM, _FRAMES)
    chosen = zip(selection.lod.tolist(), selection.x.tolist(), selection.y.tolist(), strict=True)
    return percentiles(times), set(chosen)


def _torch(clip: Path) -> tuple[dict[str, Any], Tokens, str]:
    import torch

    from foveate.bench.gpu.torch_selection import TorchSelection

    selection = TorchSelection(WIDTH, HEIGHT, Settings(), "cuda")
    frames = [torch.from_numpy(picture).cuda() for picture in pictures(clip)]
    step = torch.compile(selection.step, fullgraph=True, dynamic=False)
    state = selection.start(frames[0])
    for index in range(3):
        state, _ = step(frames[(index + 1) % 2], state)
    graphs = [_captured(torch, step, frame, state) for frame in frames]
    turns = cycle((1, 0))
    ways: dict[str, Callable[[], object]] = {
        "plain": lambda: selection.step(frames[next(turns)], state),
        "called": lambda: step(frames[next(turns)], state),
        "replayed": lambda: graphs[next(turns)][0].replay(),
    }
    times = {way: percentiles(torch_times(frame, _WARM, _FRAMES)) for way, frame in ways.items()}
    return times, selection.named(graphs[0][1].cpu().numpy()), str(torch.__version__)


def _captured(torch: Any, step: Any, frame: Any, state: Any) -> tuple[Any, Any]:
    """A graph of one frame that updates its state in place, and the tokens it writes."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            step(frame, state)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        new, tokens = step(frame, state)
        for kept, value in zip(state, new, strict=True):
            kept.copy_(value)
    return graph, tokens


if __name__ == "__main__":
    run_module(gpu_torch)
