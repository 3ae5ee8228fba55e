"""The peers, written anew: each chooses cells of the Grid, all at full resolution, for every frame of a clip.

A Baseline takes the footage and the budget K, tokens per frame, and gives one bool[rows, columns] per frame. Where a
method shows its first frame whole, that goes beyond the budget; over the later frames it keeps K on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foveate.bench.footage import CELL, Footage, Map, Picture, cell_changes
from foveate.pipeline.stream import open_stream

Mask = NDArray[np.bool_]
Baseline = Callable[[Footage, int], list[Mask]]

_SEED = 0
_ALPHAS = (0.125, 0.25, 0.5, 1.0, 2.0)


def uniform(footage: Footage, budget: int) -> list[Mask]:
    """Every (n/K)-th cell of the grid, the same in each frame."""
    rows, columns = footage.grid
    kept = min(budget, rows * columns)
    mask = np.zeros(rows * columns, np.bool_)
    mask[np.arange(kept) * (rows * columns) // kept] = True
    return [mask.reshape(rows, columns)] * len(footage.pictures)


def random(footage: Footage, budget: int) -> list[Mask]:
    """K cells drawn afresh per frame, seeded."""
    generator = np.random.default_rng(_SEED)
    return [highest(generator.random(picture.grid), budget) for picture in footage.pictures]


def evs(footage: Footage, budget: int) -> list[Mask]:
    """Efficient Video Sampling (arXiv 2510.14624), pixels, causal: the K cells that changed most, first frame whole.

    Change is the mean absolute R'G'B' difference to the same cell one frame earlier.
    """
    changes = cell_changes(footage.pictures)
    return [_whole(footage), *(highest(change, budget) for change in changes)]


def dtd(footage: Footage, budget: int) -> list[Mask]:
    """Differential Token Drop (TimeChat-Online, 2025), pixels: cells that changed by at least t, first frame whole.

    Change is EVS's; t is one number for the whole clip, such that K are kept on average.
    """
    changes = list(cell_changes(footage.pictures))
    return [_whole(footage), *_above(changes, budget * len(changes))]


def rlt(footage: Footage, budget: int) -> list[Mask]:
    """Run-Length Tokenization (NeurIPS 2024): tubelets of 2 frames, kept where they changed by at least t.

    Compared are the front of the tubelet before and the back of this one; the first tubelet is whole. A tubelet shows
    both its frames, so it counts as the two patches that it holds. A last frame without a partner has none.
    """
    pairs = len(footage.pictures) // 2
    changes = list(cell_changes(footage.pictures, gap=3))[::2]  # frames 2k and 2k + 3
    tubelets = [_whole(footage)][:pairs] + _above(changes, budget * len(changes))
    frames = [mask for mask in tubelets for _ in range(2)]
    return frames + [np.zeros(footage.grid, np.bool_)] * (len(footage.pictures) % 2)


def stc(footage: Footage, budget: int) -> list[Mask]:
    """STC, the causal form of VidCom2 (2025): the K cells farthest from the frame's mean and the past frames' mean.

    A cell's feature is its mean R'G'B' of 4x4 parts, L2-normalised. Nearness is a sum of Gaussian kernels
    exp(-d^2 / (2 alpha)), alpha = 2^-3 ... 2^1, over both means; the first frame has no past.
    """
    masks: list[Mask] = []
    total, frames = np.zeros(1), 0
    for picture in footage.pictures:
        features = cell_features(picture)
        mean = features.mean(axis=(0, 1))
        nearness = _nearness(features, mean)
        if frames:
            nearness += _nearness(features, total / frames)
        masks.append(highest(-nearness, budget))
        total, frames = total + mean, frames + 1
    return masks


def saliency(footage: Footage, budget: int) -> list[Mask]:
    """Foveate's saliency channel alone, the K highest cells."""
    rows, columns = footage.grid
    with open_stream(footage.path, maps=("saliency",), source={"frames": len(footage.pictures)}) as stream:
        maps = [selection.maps["saliency"][:rows, :columns] for selection in stream]
    return [highest(values.astype(np.float64), budget) for values in maps]


BASELINES: Final[Mapping[str, Baseline]] = {
    "uniform": uniform,
    "random": random,
    "EVS": evs,
    "DTD": dtd,
    "RLT": rlt,
    "STC": stc,
    "saliency": saliency,
}


def highest(values: Map, count: int) -> Mask:
    """The ``count`` cells of highest value; of equals, the first."""
    mask = np.zeros(values.size, np.bool_)
    mask[np.argsort(-values.ravel(), kind="stable")[:count]] = True
    return mask.reshape(values.shape)


def cell_features(picture: Picture) -> Map:
    """Each cell's mean R'G'B' of its 4x4 parts, L2-normalised: float64[rows, columns, 48]."""
    rows, columns = picture.grid
    bottom, right = rows * CELL - picture.rgb.shape[0], columns * CELL - picture.rgb.shape[1]
    padded = np.pad(picture.rgb, ((0, bottom), (0, right), (0, 0)), mode="edge")
    parts = padded.reshape(rows, 4, 4, columns, 4, 4, 3).mean(axis=(2, 5))
    features = parts.transpose(0, 2, 1, 3, 4).reshape(rows, columns, 48)
    return features / np.maximum(np.linalg.norm(features, axis=2, keepdims=True), 1e-9)


def _nearness(features: Map, mean: NDArray[np.float64]) -> Map:
    square = ((features - mean) ** 2).sum(axis=2)
    return np.sum([np.exp(-square / (2 * alpha)) for alpha in _ALPHAS], axis=0)


def _whole(footage: Footage) -> Mask:
    return np.ones(footage.grid, np.bool_)


def _above(changes: Sequence[Map], count: int) -> list[Mask]:
    """Where each of ``changes`` reaches the lowest threshold that at most ``count`` of all their cells reach."""
    if not changes:
        return []
    ordered = np.sort(np.concatenate([change.ravel() for change in changes]))[::-1]
    if count >= len(ordered):
        return [np.ones(change.shape, np.bool_) for change in changes]
    threshold = np.nextafter(ordered[count], np.inf)  # the first that must not reach it
    return [change >= threshold for change in changes]
