"""Compiled queries: a few linear terms per query, in the same form for every encoder and engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Map
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.spec.query import COEFFICIENTS as COEFFICIENTS
from foveate.pipeline.spec.query import INPUTS as INPUTS
from foveate.pipeline.spec.query import STEEPEST

Term = tuple[Map, float]
"""Weights float32[INPUTS] and bias."""

_ALONE = 200_000  # multiplications up to which one thread is faster than several

Activation = Literal["ramp", "sigmoid"]


@dataclass(frozen=True, slots=True, eq=False)
class QueryTerms:
    """The T terms of Q queries. A cell's relevance to a query is the least of its terms' values: all must hold.

    A term's value is weights . inputs + bias, mapped to [0, 1] by the activation: "ramp" clips it, "sigmoid" is
    1 / (1 + exp(-value)).
    """

    phrases: tuple[Phrase, ...]  # Q
    weights: NDArray[np.float32]  # [T, INPUTS]
    biases: NDArray[np.float32]  # [T]
    query: NDArray[np.int32]  # [T]: index of the query that a term belongs to, ascending; each has at least one
    activation: Activation


def query_terms(phrases: Sequence[Phrase], terms: Sequence[Sequence[Term]], activation: Activation) -> QueryTerms:
    """Gather the terms of each of ``phrases``.

    Raises ValueError if a phrase has no term.
    """
    for phrase, own in zip(phrases, terms, strict=True):
        if not own:
            raise ValueError(f"a query must have at least one term, {phrase.text!r} has none")
    flat = [term for own in terms for term in own]
    return QueryTerms(
        tuple(phrases),
        np.array([weights for weights, _ in flat], np.float32).reshape(-1, INPUTS),
        np.array([bias for _, bias in flat], np.float32),
        np.repeat(np.arange(len(terms), dtype=np.int32), [len(own) for own in terms]),
        activation,
    )


def coefficients_read(terms: QueryTerms | None) -> frozenset[int]:
    """The embedding channels that ``terms`` have a weight for; none for None."""
    if terms is None:
        return frozenset()
    return frozenset(np.flatnonzero(terms.weights[:, :COEFFICIENTS].any(axis=0)).tolist())


def relevance(terms: QueryTerms, inputs: Map) -> Map:
    """Each cell's relevance to each query: float32[INPUTS, ...] -> float32[Q, ...], in [0, 1]."""
    read = terms.weights.any(axis=0)
    values = _products(np.ascontiguousarray(terms.weights[:, read]), inputs.reshape(INPUTS, -1)[read])
    values += terms.biases[:, None]
    if terms.activation == "ramp":
        np.clip(values, 0, 1, out=values)
    else:
        values = np.float32(1) / (np.float32(1) + np.exp(-np.clip(values, -STEEPEST, STEEPEST)))
    starts = np.flatnonzero(np.diff(terms.query, prepend=-1))
    least = values[starts]
    for query, start, end in zip(least, starts, [*starts[1:], len(values)], strict=True):
        for term in values[start + 1 : end]:
            np.minimum(query, term, out=query)
    return least.reshape(-1, *inputs.shape[1:])


def _products(weights: Map, inputs: Map) -> Map:
    """float32[T, INPUTS] @ float32[INPUTS, cells], in parts small enough for one thread of the BLAS library.

    Its threads wait for each other in busy loops, which on a busy machine takes longer than the product.
    """
    cells = inputs.shape[1]
    part = max(_ALONE // max(weights.size, 1), 64)
    out = np.empty((len(weights), cells), np.float32)
    for start in range(0, cells, part):
        out[:, start : start + part] = weights @ inputs[:, start : start + part]
    return out


def combined_relevance(terms: QueryTerms, maps: Map) -> Map:
    """Relevance to all queries together, from that to each one: float32[Q, ...] -> float32[...], in [0, 1].

    The greatest weighted relevance to a positive query, at most 1 (1 if there are only negative ones), times
    1 - the weighted relevance, at most 1, to each negative query.
    """
    combined = np.zeros(maps.shape[1:], np.float32)
    if all(phrase.negative for phrase in terms.phrases):
        combined[...] = 1
    for phrase, values in zip(terms.phrases, maps, strict=True):
        if not phrase.negative:
            np.maximum(combined, np.minimum(np.float32(phrase.weight) * values, 1), out=combined)
    for phrase, values in zip(terms.phrases, maps, strict=True):
        if phrase.negative:
            combined *= np.float32(1) - np.minimum(np.float32(phrase.weight) * values, np.float32(1))
    return combined
