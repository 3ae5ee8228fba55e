"""Peers that keep the cells farthest from the mean. Each returns one bool[rows, columns] per frame.

A cell's features stand in for a model's embeddings: its mean R'G'B' of 4x4 parts. Both peers drop the half of the
features that vary most, and sum Gaussian kernels exp(-d^2 / (2 alpha)), alpha = 2^-3 ... 2^1, as nearness.
"""

import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Footage, Map
from foveate.bench.peers.cells import Mask, cell_features, highest

_ALPHAS = (0.125, 0.25, 0.5, 1.0, 2.0)
_TEMPERATURE = 0.01  # of the softmax that shares tokens among frames


def stc(footage: Footage, budget: int) -> list[Mask]:
    """STC (2025), the pruner of a stream: the K cells farthest from the frame's mean and from all frames' so far."""
    masks: list[Mask] = []
    total: NDArray[np.float64] = np.zeros(1)
    for frames, picture in enumerate(footage.pictures, 1):
        features = _steady_half(cell_features(picture))
        total = total + features.mean(axis=(0, 1))
        directions = _unit(features)
        nearness = _nearness(directions, directions.mean(axis=(0, 1))) + _nearness(directions, _unit(total / frames))
        masks.append(highest(-nearness, budget))
    return masks


def vidcom2(footage: Footage, budget: int) -> list[Mask]:
    """VidCom2 (2025): the cells farthest from the frame's and the clip's mean, more of them in frames unlike the clip.

    A frame's share is K / n * (1 + p - mean p), p the softmax over the frames of minus the mean nearness to the clip,
    at a temperature of 0.01. The whole clip has to be there first.
    """
    features = _unit(_steady_half(np.stack([cell_features(picture) for picture in footage.pictures])))
    to_clip = _nearness(features, features.mean(axis=(0, 1, 2)))
    to_frame = _nearness(features, features.mean(axis=(1, 2), keepdims=True))
    apart = -to_clip.mean(axis=(1, 2)) / _TEMPERATURE
    share = np.exp(apart - apart.max())
    share /= share.sum()
    counts = np.maximum(np.rint(budget * (1 + share - share.mean())), 1).astype(int)
    return [highest(-near, count) for near, count in zip(to_clip + to_frame, counts.tolist(), strict=True)]


def _steady_half(features: Map) -> Map:
    """The half of the last axis with the least variance over all else."""
    variance = features.reshape(-1, features.shape[-1]).var(axis=0)
    return features[..., np.sort(np.argsort(variance, kind="stable")[: len(variance) // 2])]


def _unit(features: Map) -> Map:
    return features / np.maximum(np.linalg.norm(features, axis=-1, keepdims=True), 1e-9)


def _nearness(features: Map, mean: NDArray[np.float64]) -> Map:
    square = ((features - mean) ** 2).sum(axis=-1)
    return np.sum([np.exp(-square / (2 * alpha)) for alpha in _ALPHAS], axis=0)
