"""The peers, written anew: each chooses cells of the Grid, all at full resolution, for every frame of a clip.

A Baseline takes the pictures, a seed and the budget K, tokens per frame; it gives one bool[rows, columns] per frame.
Where a method keeps its first frame whole, that goes beyond the budget; the later frames keep K on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foveate.bench.footage import Mask, Picture, cell_changes

Map = NDArray[np.float64]
Baseline = Callable[[list[Picture], int], list[Mask]]

_SEED = 0
_ALPHAS = (0.125, 0.25, 0.5, 1.0, 2.0)
_FEATURE_SIDE = 4  # a cell's feature is its R'G'B' at 4x4 samples


def uniform(pictures: list[Picture], budget: int) -> list[Mask]:
    """Every (n/K)-th cell of the grid, the same in each frame."""
    rows, columns = pictures[0].grid
    kept = min(budget, rows * columns)
    mask = np.zeros(rows * columns, np.bool_)
    mask[np.arange(kept) * (rows * columns) // kept] = True
    return [mask.reshape(rows, columns)] * len(pictures)


def random(pictures: list[Picture], budget: int) -> list[Mask]:
    """K cells drawn afresh per frame, seeded."""
    generator = np.random.default_rng(_SEED)
    return [highest(generator.random(picture.grid), budget) for picture in pictures]


def evs(pictures: list[Picture], budget: int) -> list[Mask]:
    """Efficient Video Sampling (arXiv 2510.14624), pixel variant, causal: the K cells that changed most since the
    previous frame, by mean absolute R'G'B' difference; the first frame whole."""
    return [_whole(pictures[0]), *(highest(change, budget) for change in cell_changes(pictures))]


def evs_clip(pictures: list[Picture], budget: int) -> list[Mask]:
    """Efficient Video Sampling as in the paper, which looks ahead: over the clip, the most changed cells, K per frame
    on average; the first frame whole."""
    return _most_over_clip(pictures, list(cell_changes(pictures)), budget)


def dtd(pictures: list[Picture], budget: int) -> list[Mask]:
    """Differential token drop (TimeChat-Online, 2025), pixel variant: the cells whose difference to the previous frame
    reaches a threshold, set for K per frame on average; the first frame whole. Its difference is summed over colours
    in the same way as EVS's, so that over one clip it keeps the same cells as ``evs_clip``, ties apart."""
    changes = list(cell_changes(pictures))
    if not changes:
        return [_whole(pictures[0])]
    threshold = _threshold(np.concatenate([change.ravel() for change in changes]), budget * len(changes))
    return [_whole(pictures[0]), *(change >= threshold for change in changes)]


def rlt(pictures: list[Picture], budget: int) -> list[Mask]:
    """Run-Length Tokenization (NeurIPS 2024): tubelets of 2 frames; a cell's tubelet is kept where the front of the one
    before it and its own back differ by more than a threshold; the first tubelet whole.

    A tubelet is one token that shows both its frames, so 2K of them are kept per 2 frames, on average.
    """
    changes = list(cell_changes(pictures, gap=3))[::2]  # frames 2k and 2k + 3
    masks = [_whole(pictures[0])]
    if changes:
        threshold = _threshold(np.concatenate([change.ravel() for change in changes]), 2 * budget * len(changes))
        masks += [change >= threshold for change in changes]
    frames = [masks[min(frame // 2, len(masks) - 1)] for frame in range(len(pictures))]
    if len(pictures) % 2 and len(pictures) > 1:  # a last frame without a partner makes no tubelet
        frames[-1] = np.zeros(pictures[0].grid, np.bool_)
    return frames
