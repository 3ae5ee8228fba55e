"""Fits the principal components of an encoder's embeddings, picture by picture, and measures the loss."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from foveate.pipeline.encoders.image_text import ImageTextEncoder, Vectors
from foveate.pipeline.encoders.pca import COMPONENTS, Projection
from foveate.pipeline.errors import EngineError, SourceError
from foveate.pipeline.extras import install_command

TEXTS: Final = (
    *("a person", "a face", "a car", "a bicycle", "an animal", "a bird", "a tree", "grass", "the sky", "water"),
    *("a road", "a building", "a window", "a door", "a table", "a chair", "a screen", "a sign", "a toy", "food"),
)
"""Texts that compressed similarity is checked with: what ordinary pictures show."""
_HELD_OUT = 5  # every fifth picture is held out for the check
_BATCH = 32  # vectors per component that are fitted at once
_CHECKED = 20_000  # vectors that are kept for the check, at most
_TOP = 0.1  # share of the vectors that count as the top


def fit_projection(encoder: ImageTextEncoder, pictures: Iterable[Vectors], components: int) -> Projection:
    """Fit ``components`` components to ``pictures``, each the unit vectors float32[n, D] of one picture.

    Every fifth picture is held out; ``check`` measures how well its similarity to TEXTS is kept. Needs memory for one
    picture and 20,000 vectors. Raises ValueError for components outside 1..16, SourceError for too few pictures, and
    EngineError without scikit-learn.
    """
    if not 1 <= components <= COMPONENTS:
        raise ValueError(f"components must be from 1 to {COMPONENTS}, got {components}")
    pca, unseen = _fitted(pictures, min(components, encoder.dimension))
    basis, mean = np.asarray(pca.components_, np.float32), np.asarray(pca.mean_, np.float32)
    explained = np.asarray(pca.explained_variance_ratio_, np.float32)
    found = Projection(encoder.id, mean, basis, explained, {})
    return Projection(encoder.id, mean, basis, explained, check(found, unseen, encoder.encode_texts(TEXTS)))


def check(projection: Projection, vectors: Vectors, directions: Vectors) -> Mapping[str, float]:
    """How well compression keeps the similarity of ``vectors`` [n, D] to ``directions`` [m, D]; means over directions.

    ``correlation``: Pearson's, of exact and compressed similarity. ``top_agreement``: share of the tenth most similar
    to a direction that is also in the compressed top tenth. ``vectors``: how many were checked.
    """
    exact = vectors @ directions.T
    weights, bias = projection.linear(directions)
    compressed = projection.compress(vectors) @ weights.T + bias
    top = max(int(len(vectors) * _TOP), 1)
    shared = [
        len(np.intersect1d(np.argsort(-one, kind="stable")[:top], np.argsort(-two, kind="stable")[:top])) / top
        for one, two in zip(exact.T, compressed.T, strict=True)
    ]
    return {
        "correlation": round(float(np.mean(_correlations(exact, compressed))), 4),
        "top_agreement": round(float(np.mean(shared)), 4),
        "vectors": float(len(vectors)),
    }


def _correlations(one: Vectors, two: Vectors) -> Vectors:
    """Pearson's correlation of each pair of columns; 0 where one of them is constant."""
    one, two = one - one.mean(axis=0), two - two.mean(axis=0)
    spread = np.linalg.norm(one, axis=0) * np.linalg.norm(two, axis=0)
    return np.asarray((one * two).sum(axis=0) / np.maximum(spread, np.finfo(np.float32).tiny), np.float32)


def _fitted(pictures: Iterable[Vectors], components: int) -> tuple[Any, Vectors]:
    """The fitted IncrementalPCA (Ross et al. 2008), and vectors that it has not seen."""
    try:
        from sklearn.decomposition import IncrementalPCA
    except ImportError:
        raise EngineError(f"fitting needs scikit-learn: {install_command('clip')}") from None
    held_out = _HeldOut()
    pca, fitted = IncrementalPCA(components), False
    for batch in _batches(held_out.without(pictures), _BATCH * components):
        if len(batch) >= components:  # only the one batch of a short stream is smaller
            pca.partial_fit(batch)
            fitted = True
    if not fitted or not held_out.vectors:
        raise SourceError(f"fitting needs at least {_HELD_OUT} pictures and {components} vectors; give more pictures")
    return pca, np.concatenate(held_out.vectors)


class _HeldOut:
    """Takes every fifth picture out of a stream; keeps some vectors of it."""

    def __init__(self) -> None:
        self.vectors: list[Vectors] = []
        self._stride = 1

    def without(self, pictures: Iterable[Vectors]) -> Iterator[Vectors]:
        """Yield the others."""
        for index, vectors in enumerate(pictures):
            if index % _HELD_OUT == _HELD_OUT - 1:
                self._keep(vectors)
            else:
                yield vectors

    def _keep(self, vectors: Vectors) -> None:
        self.vectors.append(vectors[:: self._stride])
        while sum(map(len, self.vectors)) > _CHECKED:
            self._stride *= 2
            self.vectors = [kept[::2] for kept in self.vectors]


def _batches(pictures: Iterable[Vectors], least: int) -> Iterator[Vectors]:
    """Vectors of several pictures at once, at least ``least`` of them but for the only batch of a short stream."""
    gathered: list[Vectors] = []
    ready: Vectors | None = None
    for vectors in pictures:
        gathered.append(vectors)
        if sum(map(len, gathered)) >= least:
            if ready is not None:
                yield ready
            ready, gathered = np.concatenate(gathered), []
    rest = [*([] if ready is None else [ready]), *gathered]
    if rest:
        yield np.concatenate(rest)
