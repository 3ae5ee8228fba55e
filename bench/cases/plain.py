"""The CPU engine against the same selection in plain torch, which does the whole picture for every frame:

python -m foveate.bench.cases.plain sample_videos/bunny.mp4 --out plain.json

Both use one thread, and processor time counts. The scene is that of gpu.frame: two pictures of 1080p, of which a tenth
of the tiles differ, in turns; for ``still`` one of them again and again, for ``keyframe`` with everything anew on each
frame. Plain torch is gpu/torch_selection.py as it stands, neither compiled nor captured; its cost does not depend on
what changed. Needs torch.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.gpu.scene import HEIGHT, WIDTH, pictures
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.bench.speed.cost import on_cpu, select
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings

_FRAMES: Final = 12  # of a run; the first two do not count
_SKIPPED: Final = 2
_PLAIN_FRAMES: Final = 4
_EQUAL: Final = 0.9  # share of the engine's tokens that torch must choose too: both do the same work
_NEVER: Final = 1_000_000

Picture = NDArray[np.uint8]  # NV12
Tokens = set[tuple[int, int, int]]


def plain(
    clip: Annotated[Positional[str], arg(metavar="FILE", help="A video file, whose first frame is the scene.")],
    out: Out = None,
    repeats: Annotated[int, arg(metavar="N", help="Turns; the median counts.")] = 5,
) -> None:
    """Compare the processor time of a frame."""
    record = new_record("plain", out, width=WIDTH, height=HEIGHT)
    check_least(1, repeats=repeats)
    scene = pictures(Path(clip))
    torch = _Torch(scene)
    samples: dict[str, list[float]] = {name: [] for name in ("plain", *scenes(scene))}
    equal = 0.0
    for turn in range(repeats):
        for name, (frames, settings) in scenes(scene).items():
            selections, times = select(frames, settings)
            samples[name].append(median(times[_SKIPPED:]))
            if name == "tenth" and not turn:
                equal = agreement(selections[-1], torch.tokens(len(frames)))
        samples["plain"].append(torch.milliseconds())
    record["torch"] = torch.version
    costs = {name: median(taken) for name, taken in samples.items()}
    record |= {"equal_tokens": equal, "times_faster": {name: costs["plain"] / cost for name, cost in costs.items()}}
    record["cases"] = [{"name": name, "cpu_ms": costs[name], "samples": {"cpu_ms": samples[name]}} for name in samples]
    for name, cost in costs.items():
        say(f"{name}: {cost:.2f} ms of processor time; plain torch takes {costs['plain'] / cost:.1f} times as much")
    hand_out(record, out)


def scenes(scene: tuple[Picture, Picture]) -> Mapping[str, tuple[list[Frame], Settings]]:
    """What the engine is given, by name: nothing changes, a tenth of the tiles do, or each frame is a keyframe."""
    first, second = map(_frame, scene)
    turns = [first, second] * (_FRAMES // 2)
    return {
        "still": (_numbered([first] * _FRAMES), _settings(_NEVER)),
        "tenth": (_numbered(turns), _settings(_NEVER)),
        "keyframe": (_numbered(turns), _settings(1)),
    }


def agreement(selection: Selection, tokens: Tokens) -> float:
    """Share of the engine's tokens that are among ``tokens``. Raises RedCheckError where they are too few."""
    chosen = set(zip(selection.lod.tolist(), selection.x.tolist(), selection.y.tolist(), strict=True))
    equal = len(chosen & tokens) / max(len(chosen), 1)
    if equal < _EQUAL:
        raise RedCheckError(f"torch chose {equal:.1%} of the engine's tokens")
    return equal


def _settings(interval: int) -> Settings:
    return on_cpu(Settings.model_validate({"change": {"keyframe_interval": interval}, "cache": {"enabled": False}}))


def _frame(picture: Picture) -> Frame:
    chroma = picture[HEIGHT:].reshape(HEIGHT // 2, WIDTH // 2, 2)
    planes = (np.ascontiguousarray(chroma[..., 0]), np.ascontiguousarray(chroma[..., 1]))
    return Frame(0, 0.0, picture[:HEIGHT], planes, Colour("bt709"))


def _numbered(frames: Sequence[Frame]) -> list[Frame]:
    return [Frame(i, i / 25, each.luma, each.chroma, each.colour) for i, each in enumerate(frames)]


class _Torch:
    """Plain torch on the processor, one thread."""

    def __init__(self, scene: tuple[Picture, Picture]) -> None:
        import torch

        from foveate.bench.gpu.torch_selection import TorchSelection

        torch.set_num_threads(1)
        self.version = str(torch.__version__)
        self._selection = TorchSelection(WIDTH, HEIGHT, Settings(), "cpu")
        self._frames = [torch.from_numpy(picture) for picture in scene]

    def tokens(self, count: int) -> Tokens:
        """Those of the last of ``count`` frames."""
        state = self._selection.start(self._frames[0])
        for index in range(1, count):
            state, tokens = self._selection.step(self._frames[index % 2], state)
        return self._selection.named(tokens.numpy())

    def milliseconds(self) -> float:
        """Processor time of a frame, the median of a few."""
        state = self._selection.start(self._frames[0])
        times: list[Any] = []
        for index in range(1, _PLAIN_FRAMES + 1):
            start = time.thread_time()
            state, _ = self._selection.step(self._frames[index % 2], state)
            times.append(1000 * (time.thread_time() - start))
        return float(median(times[1:]))


if __name__ == "__main__":
    run_module(plain)
