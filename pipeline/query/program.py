"""Queries as numbers: a few linear terms per query, the same for every encoder and engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.phrase import Phrase
from foveate.pipeline.spec.query import COEFFICIENTS as COEFFICIENTS
from foveate.pipeline.spec.query import INPUTS as INPUTS
from foveate.pipeline.spec.query import STEEPEST

Map = NDArray[np.float32]

Term = tuple[Map, float]
"""Weights float32[INPUTS] and bias."""

_ALONE = 200_000  # multiplications that one thread does faster than several

Activation = Literal["ramp", "sigmoid"]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Q queries of T terms altogether. A cell's relevance to a query is the least of its terms' values: all must hold.

    A term's value is weights . inputs + bias, brought into [0, 1] by the activation: "ramp" clips it, "sigmoid" is
    1 / (1 + exp(-value)).
    """

    phrases: tuple[Phrase, ...]  # Q
    weights: NDArray[np.float32]  # [T, INPUTS]
    biases: NDArray[np.float32]  # [T]
    query: NDArray[np.int32]  # [T]: which query the term belongs to, ascending; every query has at least one
    activation: Activation


def program(phrases: Sequence[Phrase], terms: Sequence[Sequence[Term]], activation: Activation) -> Program:
    """The Program of ``phrases``, with the (weights float32[INPUTS], bias) of each one's terms.

    Raises ValueError where a phrase has no term.
    """
    for phrase, own in zip(phrases, terms, strict=True):
        if not own:
            raise ValueError(f"a query must have at least one term, {phrase.text!r} has none")
    flat = [term for own in terms for term in own]
    return Program(
        tuple(phrases),
        np.array([weights for weights, _ in flat], np.float32).reshape(-1, INPUTS),
        np.array([bias for _, bias in flat], np.float32),
        np.repeat(np.arange(len(terms), dtype=np.int32), [len(own) for own in terms]),
        activation,
    )


def coefficients_read(program: Program | None) -> frozenset[int]:
    """The embedding channels that a program reads; None reads none."""
    if program is None:
        return frozenset()
    return frozenset(np.flatnonzero(program.weights[:, :COEFFICIENTS].any(axis=0)).tolist())


def relevance(program: Program, inputs: Map) -> Map:
    """Each cell's relevance to each query: float32[INPUTS, ...] -> float32[Q, ...], in [0, 1]."""
    read = program.weights.any(axis=0)
    values = _products(np.ascontiguousarray(program.weights[:, read]), inputs.reshape(INPUTS, -1)[read])
    values += program.biases[:, None]
    if program.activation == "ramp":
        np.clip(values, 0, 1, out=values)
    else:
        values = np.float32(1) / (np.float32(1) + np.exp(-np.clip(values, -STEEPEST, STEEPEST)))
    starts = np.flatnonzero(np.diff(program.query, prepend=-1))
    least = values[starts]
    for query, start, end in zip(least, starts, [*starts[1:], len(values)], strict=True):
        for term in values[start + 1 : end]:
            np.minimum(query, term, out=query)
    return least.reshape(-1, *inputs.shape[1:])


def _products(weights: Map, inputs: Map) -> Map:
    """float32[T, INPUTS] @ float32[INPUTS, cells], in parts so small that the library does not share them out.

    Its threads wait for each other in busy loops: on a machine with other work that takes longer than the product.
    """
    cells = inputs.shape[1]
    part = max(_ALONE // max(weights.size, 1), 64)
    out = np.empty((len(weights), cells), np.float32)
    for start in range(0, cells, part):
        out[:, start : start + part] = weights @ inputs[:, start : start + part]
    return out


def participation(program: Program, maps: Map) -> Map:
    """How much a cell takes part, from its relevance to each query: float32[Q, ...] -> float32[...], in [0, 1].

    The greatest weighted relevance to what is wanted, at most 1 (1 where only negative queries are given), times
    1 - the weighted relevance, at most 1, to each thing that is not.
    """
    taking = np.zeros(maps.shape[1:], np.float32)
    if all(phrase.negative for phrase in program.phrases):
        taking[...] = 1
    for phrase, values in zip(program.phrases, maps, strict=True):
        if not phrase.negative:
            np.maximum(taking, np.minimum(np.float32(phrase.weight) * values, 1), out=taking)
    for phrase, values in zip(program.phrases, maps, strict=True):
        if phrase.negative:
            taking *= np.float32(1) - np.minimum(np.float32(phrase.weight) * values, np.float32(1))
    return taking
