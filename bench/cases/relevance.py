"""What queries cost once the embedding channels are there: the relevance of cells, by the number of queries.

python -m foveate.bench.cases.relevance --out relevance.json
"""

import time
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.pipeline.attributes.encoder import AttributesEncoder
from foveate.pipeline.phrase import parse
from foveate.pipeline.query.terms import INPUTS, QueryTerms, combined_relevance, relevance

CELLS: Final = (273, 8_160)  # the usual budget; all of a picture of 1080p
_QUERIES: Final = (1, 2, 10, 100)
WARM_UP, RUNS = 20, 200
_WORDS: Final = (
    "red",
    "blue moving",
    "small text",
    "-green",
    "left",
    "dark large",
    "still",
    "white top",
    "pink",
    "grey",
)


def measure(
    out: Out = None,
) -> None:
    """Time the relevance of 273 and of 8,160 cells to 1, 2, 10 and 100 queries."""
    record = new_record("relevance", out)
    for cells in CELLS:
        for queries in _QUERIES:
            samples = timed(cells, queries)
            record["cases"].append({"cells": cells, "queries": queries, "milliseconds": samples})
            say(f"{cells} cells, {queries} queries: {median(samples):.4f} ms")
    hand_out(record, out)


def timed(cells: int, queries: int) -> list[float]:
    """Milliseconds of each run. Raises RedCheckError where the relevance is not what its definition says."""
    phrases = [parse(f"{_WORDS[index % len(_WORDS)]}:{index % 7 + 1}") for index in range(queries)]
    terms = AttributesEncoder().compile(phrases).terms
    assert terms is not None, "all words are known"
    inputs = np.random.default_rng(1).random((INPUTS, cells), dtype=np.float32)
    if not np.allclose(relevance(terms, inputs), _by_definition(terms, inputs), atol=1e-5):
        raise RedCheckError(f"the relevance of {cells} cells to {queries} queries is wrong")
    samples = []
    for _ in range(WARM_UP + RUNS):
        start = time.perf_counter()
        combined_relevance(terms, relevance(terms, inputs))
        samples.append((time.perf_counter() - start) * 1e3)
    return samples[WARM_UP:]


def _by_definition(terms: QueryTerms, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Of each query the least of its terms, brought into [0, 1]: float64[Q, cells]."""
    values = [
        np.clip(sum(float(w) * row.astype(np.float64) for w, row in zip(weights, inputs, strict=True)) + bias, 0, 1)
        for weights, bias in zip(terms.weights, terms.biases, strict=True)
    ]
    own = [[values[term] for term in np.flatnonzero(terms.query == query)] for query in range(len(terms.phrases))]
    return np.array([np.min(terms, axis=0) for terms in own])


if __name__ == "__main__":
    run_module(measure)
