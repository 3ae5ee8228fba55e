"""How many principal components an embedding needs: likeness to a query from a few numbers, against the exact one.

The embeddings are a stand-in of random features, as no trained model comes with Foveate. Their spectrum falls slowly:
they need more components than a trained model, which sees more of what cells have in common. For a model of your own,
``foveate fit-pca --components N`` tells the same figures.
"""

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.bench.case import Clip
from foveate.bench.clips.footage import CELL, Picture, read_footage
from foveate.bench.records.jobs import Job
from foveate.bench.records.writing import clip_record
from foveate.bench.suites.plan import Plan
from foveate.pipeline.encoders.image_text import Vectors, unit
from foveate.pipeline.encoders.pca import COMPONENTS

GROUP: Final = "PCA size"
SIZES: Final = (2, 4, 8, 12, 16, 24, 32)
_DIMENSION: Final = 512
_SEED: Final = 5
_QUERIES: Final = 32
_TOP: Final = 0.1
_FRAMES: Final = 12  # of a clip, spread over it; every third is held out


def components_job(clip: Clip, plan: Plan) -> Job:
    """One job: all sizes on one clip."""
    return Job(f"{GROUP}, {clip.name}", partial(_measure, clip, plan.frames))


def _measure(clip: Clip, frames: int) -> list[dict[str, Any]]:
    pictures = read_footage(clip.path, frames).pictures[:: max(1, frames // _FRAMES)]
    fitted = np.concatenate([random_features(picture) for place, picture in enumerate(pictures) if place % 3 != 2])
    unseen = np.concatenate([random_features(picture) for place, picture in enumerate(pictures) if place % 3 == 2])
    chosen = np.random.default_rng(_SEED).choice(len(unseen), _QUERIES, replace=False)
    about = clip_record(clip, len(pictures))
    mean, basis = components(fitted)
    return [
        {"name": f"{GROUP} {size}, {clip.name}", "group": GROUP, "value": str(size), "default": size == COMPONENTS}
        | {"clip": clip.name, "memory": None}
        | agreement(mean, basis[:size], unseen, unseen[chosen])
        | about
        for size in SIZES
    ]


def random_features(picture: Picture) -> Vectors:
    """A unit vector for each cell: rectified random projections of its pixels, less their mean, and of the mean.

    float32[cells, 512] (Rahimi and Recht, 2007).
    """
    rows, columns = picture.grid
    bottom, right = rows * CELL - picture.rgb.shape[0], columns * CELL - picture.rgb.shape[1]
    padded = np.pad(picture.rgb, ((0, bottom), (0, right), (0, 0)), mode="edge").astype(np.float32) / 255
    cells = padded.reshape(rows, CELL, columns, CELL, 3).transpose(0, 2, 1, 3, 4).reshape(rows * columns, -1)
    mean = np.tile(cells.reshape(len(cells), -1, 3).mean(axis=1), CELL * CELL)
    mix = np.random.default_rng(_SEED).normal(size=(2 * cells.shape[1], _DIMENSION)).astype(np.float32)
    inputs = np.concatenate([3 * (cells - mean), mean - np.float32(0.5)], axis=1)
    return unit(np.maximum(inputs @ mix / np.float32(cells.shape[1] ** 0.5), 0))


def components(vectors: Vectors) -> tuple[Vectors, Vectors]:
    """The mean of vectors [n, D], and their principal components as rows [D, D], those of most variance first."""
    mean = vectors.mean(axis=0)
    apart = vectors - mean
    return mean, np.asarray(np.linalg.eigh(apart.T @ apart)[1].T[::-1])  # eigh has the least first


def agreement(mean: Vectors, basis: Vectors, unseen: Vectors, queries: Vectors) -> dict[str, float]:
    """``correlation`` of exact likeness and the one from the components ``basis``, mean over the queries;
    ``top_agreement``: share of the tenth most alike that is the same.
    """
    exact = unseen @ queries.T
    likely = (unseen - mean) @ basis.T @ (queries @ basis.T).T + queries @ mean
    top = max(1, int(_TOP * len(unseen)))
    shared = [
        len(np.intersect1d(np.argsort(-one)[:top], np.argsort(-two)[:top]))
        for one, two in zip(exact.T, likely.T, strict=True)
    ]
    correlations: list[NDArray[np.float64]] = [
        np.corrcoef(one, two)[0, 1] for one, two in zip(exact.T, likely.T, strict=True)
    ]
    return {"correlation": float(np.mean(correlations)), "top_agreement": float(np.mean(shared) / top)}
