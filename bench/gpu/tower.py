"""A vision tower of full size on a GPU: all patches of a picture at once, against the chosen ones in a CUDA graph.

python -m foveate.bench.gpu.tower sample_videos/bunny.mp4 --out gpu_tower.json

The tower is Qwen3-VL's, by its default configuration, with random weights in bf16: times do not depend on weights.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.clips.encoding import looped
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.bare import decode_bare
from foveate.bench.gpu.launches import torch_times
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.pipeline.selection import Selection
from foveate.pipeline.stream import open_stream

_SIDE: Final = 64  # patches along each side of the whole picture: 4,096
_BUDGET: Final = 288
_REPEATS: Final = 30
_TIMES: Final = 4  # the clip, one after the other
_MEAN: Final = (0.5, 0.5, 0.5)  # of Qwen3-VL's processor, and the deviation as well


def gpu_tower(
    file: Annotated[Positional[str], arg(metavar="FILE", help="What is read to embeddings.")],
    out: Out = None,
) -> None:
    """Measure device time of a tower, and frames per second from file to embeddings, of all patches and of 288."""
    record = new_record("gpu_tower", out)
    import torch

    from foveate.pipeline.vlm.tower_graph import TowerGraph

    tower = _tower()
    graph, compiled = TowerGraph(tower), TowerGraph(tower, compiled=True)
    every, some = (_selection(*size) for size in ((_SIDE, _SIDE), (16, 18)))
    record["card"] = torch.cuda.get_device_name()
    times = {
        "eager_4096": _device_ms(_eager(tower, every)),
        "eager_288": _device_ms(_eager(tower, some)),
        "graph_288": _device_ms(_graphed(tower, graph, some)),
        "compiled_graph_288": _device_ms(_graphed(tower, compiled, some)),
    }
    ratios = {name: times["eager_4096"] / value for name, value in times.items()}
    record |= {"device_ms": times, "ratios": ratios}
    shown = ", ".join(f"{name} {value:.2f} ms ({ratios[name]:.1f}x)" for name, value in times.items())
    say(f"tower on {record['card']}: {shown}")
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        clip = Path(folder) / "looped.mp4"
        frames = looped(Path(file), clip, _TIMES)
        decode_bare(str(clip))
        whole = _whole(tower, every, clip, frames)
        fps = {name: _chosen(tower, each, clip, frames) for name, each in (("graph", graph), ("compiled", compiled))}
    record |= {"frames": frames, "fps_4096": whole, "fps_288": fps}
    shown = ", ".join(f"{name} {value:.1f} ({value / whole:.1f}x)" for name, value in fps.items())
    say(f"file to embeddings, fps: 4,096 patches {whole:.1f}; 288: {shown}")
    hand_out(record, out)


def _tower() -> Any:
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    from foveate.pipeline.vlm.towers import Tower

    text = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    text |= {"num_key_value_heads": 2, "vocab_size": 64}
    with torch.device("cuda"):
        model = Qwen3VLForConditionalGeneration(Qwen3VLConfig(text_config=text))
    return Tower(model.to(torch.bfloat16).eval())


def _selection(rows: int, columns: int) -> Selection:
    """All cells of a picture at full resolution, in 2x2 groups; no patches."""
    row, column, part = np.indices((rows // 2, columns // 2, 4), np.int32).reshape(3, -1)
    y, x = 32 * row + 16 * (part // 2) + 8, 32 * column + 16 * (part % 2) + 8
    some = np.zeros(len(x), np.float32)
    return Selection(
        0, 0.0, 16 * columns, 16 * rows, "first", 1.0, 1.0, x, y, np.zeros(len(x), np.uint8), some, some, some, None,
        np.zeros(len(x), np.int32), np.ones(len(x), np.bool_),
    )  # fmt: skip


def _rows(tower: Any, count: int) -> Any:
    import torch

    return torch.randn(count, 3 * tower.frames * tower.patch**2, device="cuda", dtype=torch.bfloat16)


def _eager(tower: Any, selection: Selection) -> Callable[[], Any]:
    """The tower alone: its inputs besides the patches are computed before, as they are the same for every frame."""
    import torch

    from foveate.pipeline.vlm.groups import Groups

    rows = _rows(tower, len(selection))
    grid, keywords = tower.inputs([Groups.of(selection, tower.merge)], exact=True)

    def run() -> Any:
        with torch.no_grad():
            return tower.run(rows, grid, keywords)

    return run


def _graphed(tower: Any, graph: Any, selection: Selection) -> Callable[[], Any]:
    from foveate.pipeline.vlm.groups import Groups

    rows, groups = _rows(tower, len(selection)), Groups.of(selection, tower.merge)
    found, expected = graph.encode(rows, groups), tower.encode(rows, [groups])
    difference = (found.pooler_output[0] - expected.pooler_output[0]).abs().max()
    if not difference <= 0.02 * expected.pooler_output[0].abs().max():  # bf16 has 8 bits; other kernels may be taken
        raise RedCheckError(f"the graph's features differ from the tower's by {float(difference)}")
    key = next(iter(graph._graphs))
    return graph._graphs[key].graph.replay


def _device_ms(call: Callable[[], Any]) -> float:
    return float(np.median(torch_times(call, 5, _REPEATS)))


def _whole(tower: Any, selection: Selection, clip: Path, frames: int) -> float:
    """Frames per second: decoded by the hardware, then the tower; making rows of the pictures is not even counted."""
    import PyNvVideoCodec as nvc  # noqa: N813
    import torch

    run = _eager(tower, selection)
    run()
    torch.cuda.synchronize()
    begin, seen = time.perf_counter(), 0
    demuxer = nvc.CreateDemuxer(filename=str(clip))
    decoder = nvc.CreateDecoder(gpuid=0, codec=demuxer.GetNvCodecId(), usedevicememory=True)
    for packet in demuxer:
        for _ in decoder.Decode(packet):
            run()
            seen += 1
    torch.cuda.synchronize()
    if seen != frames:
        raise RedCheckError(f"{seen} of {frames} frames were encoded")
    return frames / (time.perf_counter() - begin)


def _chosen(tower: Any, graph: Any, clip: Path, frames: int) -> float:
    """Frames per second: decoded, chosen, made rows of and encoded, all on the card."""
    import torch

    from foveate.pipeline.vlm.device_rows import channel_rows
    from foveate.pipeline.vlm.groups import Groups

    settings: dict[str, Any] = {"allocation": {"merge": tower.merge}, "budget": _BUDGET, "device_patches": True}

    def read() -> int:
        seen = 0
        with open_stream(str(clip), engine="cuda", **settings) as stream:
            for selection in stream:
                groups = Groups.of(selection, tower.merge)
                patches = torch.from_dlpack(selection.device_patches)
                order = torch.from_numpy(groups.order).cuda(non_blocking=True)
                graph.encode(channel_rows(patches[order], _MEAN, _MEAN, tower.frames), groups)
                seen += 1
        torch.cuda.synchronize()
        return seen

    read()  # captures the graphs, compiles the kernels
    begin = time.perf_counter()
    if (seen := read()) != frames:
        raise RedCheckError(f"{seen} of {frames} frames were encoded")
    return frames / (time.perf_counter() - begin)


if __name__ == "__main__":
    run_module(gpu_tower)
