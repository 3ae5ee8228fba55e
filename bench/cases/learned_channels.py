"""An experiment: a channel that a tiny convolution learns, against the hand-made ones fitted to the same target.

python -m foveate.bench.cases.learned_channels --out learned_channels.json

The target is what is not known yet: how much each cell changes until the next frame, as log(1 + mean absolute
difference of luma). Each sample is held out once, and what was learned on the other two is judged there, by ranks.
`hand-made`: least squares on the product's channels. `learned`: 531 weights on luma at a quarter of the size and its
difference from the frame before. `both`: least squares on both. `last change`: the change from the frame before,
unfitted. Needs torch.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from statistics import fmean
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import arg

from foveate.bench.case import Clip
from foveate.bench.cases.motion_vectors import level_of
from foveate.bench.cases.ranking import agreement
from foveate.bench.clips.footage import Plane, cell_means, read_footage
from foveate.bench.clips.samples import SAMPLES, sample_clips
from foveate.bench.entry import Out, check_least, needed, run_module
from foveate.bench.records.table import methods_table, say
from foveate.bench.records.writing import hand_out, method_cases, new_record
from foveate.pipeline import open_stream

with needed(__name__):
    import torch

Map = NDArray[np.float32]

HAND_MADE: Final = (
    *("red", "green", "blue", "edges", "edges_inverted", "highpass", "lowpass"),
    *("motion", "saliency", "text", "edge_distance", "eccentricity"),
)
METHODS: Final = ("last change", "hand-made", "learned", "both")
_LEVEL: Final = 2
_FEATURES: Final = (6, 4)  # channels of the two hidden layers
_STEPS, _BATCH, _RATE = 400, 6, 0.01
_SEED: Final = 0


@dataclass(frozen=True, slots=True, eq=False)
class Shot:
    """One sample: N frames, each with the frames before and after it."""

    clip: Clip
    pictures: NDArray[np.float32]  # [N, 2, h, w]: luma around 0, and its difference from the frame before
    channels: NDArray[np.float32]  # [N, rows, columns, len(HAND_MADE)]
    last: NDArray[np.float32]  # [N, rows, columns]: change from the frame before
    target: NDArray[np.float32]  # [N, rows, columns]: change until the next frame


def learned_channels(
    out: Out = None, frames: Annotated[int, arg(metavar="N", help="Frames of each sample.")] = 60
) -> None:
    """Compare a learned channel with the hand-made ones, on samples that neither was fitted to."""
    check_least(3, frames=frames)
    record = new_record("learned_channels", out, torch=torch.__version__)
    record |= {"channels": list(HAND_MADE), "weights": weights_of(network())}
    shots = [read_shot(clip, frames) for clip in sample_clips(*SAMPLES)]
    for held in shots:
        record["cases"] += held_out(held, [shot for shot in shots if shot is not held])
    for method in METHODS:
        mean = {key: fmean(case[key] for case in record["cases"] if case["method"] == method) for key in _FIGURES}
        record["cases"].append({"name": f"mean, {method}", "clip": "mean", "method": method, **mean})
    say(methods_table("Spearman, top tenth", record["cases"], "clip", _shown))
    hand_out(record, out)


_FIGURES: Final = ("spearman", "top_tenth")


def _shown(case: Mapping[str, Any]) -> str:
    return f"{case['spearman']:.3f}, {case['top_tenth']:.3f}"


def read_shot(clip: Clip, frames: int) -> Shot:
    """The inputs and targets of a sample's frames, but the first and the last."""
    lumas = [picture.luma for picture in read_footage(clip.path, frames).pictures]
    small = np.stack([level_of(luma, _LEVEL) for luma in lumas]).astype(np.float32)
    changes = np.stack([change(before, now) for before, now in pairwise(lumas)])
    rows, columns = changes.shape[1:]
    with open_stream(str(clip.path), maps=HAND_MADE) as stream:
        maps = [
            np.stack([selection.maps[name][:rows, :columns] for name in HAND_MADE], axis=-1)
            for selection in islice(stream, len(lumas))
        ]
    pictures = np.stack([small[1:-1] / 255 - 0.5, (small[1:-1] - small[:-2]) / 32], axis=1)
    return Shot(clip, pictures.astype(np.float32), np.stack(maps[1:-1]), changes[:-1], changes[1:])


def change(before: Plane, now: Plane) -> Map:
    """log(1 + mean absolute difference) of each cell, in grey levels: float32[rows, columns]."""
    off = np.abs(now.astype(np.float32) - before)
    return np.log1p(cell_means(off[..., None])).astype(np.float32)


def held_out(held: Shot, others: Sequence[Shot]) -> list[dict[str, Any]]:
    """A case for each method, learned on the ``others``: means over the frames of ``held``.

    ``spearman``: rank correlation with the target over the cells; ``top_tenth``: share of the tenth of the cells that
    change most that is in the tenth predicted to. ``learned_ms``: processor time of the convolution per frame.
    """
    model = trained(network(), others)
    began = time.process_time()
    learned = applied(model, held.pictures)
    learned_ms = 1000 * (time.process_time() - began) / len(held.pictures)
    targets = np.concatenate([shot.target.ravel() for shot in others])
    hand = [_rows(shot.channels) for shot in others]
    both = [np.column_stack([_rows(shot.channels), applied(model, shot.pictures).ravel()]) for shot in others]
    weights = [fitted(np.concatenate(each), targets) for each in (hand, both)]
    own = _rows(held.channels)
    predictions: Mapping[str, NDArray[np.floating]] = {
        "last change": held.last,
        "hand-made": predicted(own, weights[0]).reshape(held.target.shape),
        "learned": learned,
        "both": predicted(np.column_stack([own, learned.ravel()]), weights[1]).reshape(held.target.shape),
    }
    found = {method: {**_judged(each, held.target), "learned_ms": learned_ms} for method, each in predictions.items()}
    return method_cases(held.clip, len(held.target), found)


def _judged(found: NDArray[np.floating], target: Map) -> dict[str, Any]:
    pairs = [agreement(now.ravel(), own.ravel()) for own, now in zip(found, target, strict=True)]
    spearman, _, tenth = (list(each) for each in zip(*pairs, strict=True))
    samples = {"spearman": spearman, "top_tenth": tenth}
    return {"spearman": fmean(spearman), "top_tenth": fmean(tenth), "samples": samples}


def _rows(channels: NDArray[np.float32]) -> NDArray[np.float32]:
    return channels.reshape(-1, channels.shape[-1])


def fitted(values: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.float64]:
    """Weights of columns [n, C], and a bias at the end, by least squares: float64[C + 1]."""
    found = np.linalg.lstsq(_with_one(values), target.astype(np.float64), rcond=None)[0]
    return np.asarray(found, np.float64)


def predicted(values: NDArray[np.float32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weighted sums of the columns: float64[n]."""
    return np.asarray(_with_one(values) @ weights, np.float64)


def _with_one(values: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.column_stack([values.astype(np.float64), np.ones(len(values))])


def network() -> torch.nn.Sequential:
    """From [N, 2, h, w] at a quarter of the size to one value per cell, [N, 1, h / 4, w / 4]."""
    torch.manual_seed(_SEED)
    first, second = _FEATURES
    return torch.nn.Sequential(
        torch.nn.Conv2d(2, first, 5, stride=2, padding=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(first, second, 3, stride=2, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(second, 1, 1),
    )


def weights_of(model: torch.nn.Module) -> int:
    """How many numbers a model has learned."""
    return sum(each.numel() for each in model.parameters())


def trained(model: torch.nn.Sequential, shots: Sequence[Shot], steps: int = _STEPS) -> torch.nn.Sequential:
    """The model after ``steps`` of Adam on the squared error of batches of one shot each, the shots in turns."""
    optimizer = torch.optim.Adam(model.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    generator = np.random.default_rng(_SEED)
    for step in range(steps):
        shot = shots[step % len(shots)]
        chosen = generator.integers(0, len(shot.target), _BATCH)
        found = model(torch.from_numpy(shot.pictures[chosen]))[:, 0]
        loss = torch.nn.functional.mse_loss(found, torch.from_numpy(shot.target[chosen]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


def applied(model: torch.nn.Sequential, pictures: NDArray[np.float32]) -> Map:
    """The model's value for each cell of each picture: float32[N, rows, columns]."""
    with torch.inference_mode():
        return np.concatenate([model(torch.from_numpy(each[None]))[:, 0].numpy() for each in pictures])


if __name__ == "__main__":
    run_module(learned_channels)
