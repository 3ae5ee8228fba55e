"""An experiment: the relevance to each of a fixed vocabulary kept as an atlas of maps, against computing it on demand.

python -m foveate.bench.cases.vocabulary_atlas --out vocabulary_atlas.json

The atlas holds one map per word, and is brought up to date where cells changed. A query of one word is then a look-up:
a map, or samples of it at some cells. On demand, the word's terms are evaluated on the embedding channels, of all cells
or of those alone; those of ten words at once. Random channels of 1920x1080: the cost does not depend on their values.
Processor time of one thread.
"""

import time
from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.pipeline.attributes.encoder import AttributesEncoder
from foveate.pipeline.attributes.vocabulary import SYNONYMS, phrase_terms
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.phrase import parse
from foveate.pipeline.query.terms import COEFFICIENTS, INPUTS, QueryTerms, query_terms, relevance

WORDS: Final = 100
TOGETHER: Final = 10  # words that are asked for at once
POINTS: Final = 273  # cells that are asked for: the usual budget
CHANGED: Final = (0.1, 0.3, 1.0)  # shares of the cells
GEOMETRY: Final = Geometry(1920, 1080)
WARM_UP, RUNS = 20, 200

Relevances = NDArray[np.float32]  # [words, cells]


class Atlas:
    """The relevance of every cell to every word of a vocabulary."""

    def __init__(self, terms: QueryTerms, inputs: Relevances) -> None:
        """``inputs``: the embedding channels and places of all cells, float32[INPUTS, cells]."""
        self._terms = terms
        self._inputs = inputs
        self.maps = relevance(terms, inputs)

    def update(self, cells: NDArray[np.intp]) -> None:
        """Compute anew the cells whose embeddings have changed."""
        if len(cells) == self.maps.shape[1]:
            self.maps = relevance(self._terms, self._inputs)
        else:
            self.maps[:, cells] = relevance(self._terms, self._inputs[:, cells])


def vocabulary_atlas(out: Out = None) -> None:
    """Time the atlas, and what it saves."""
    record = new_record("vocabulary_atlas", out, words=WORDS)
    for name, terms in vocabularies().items():
        record["cases"] += measured(name, terms)
    for case in record["cases"]:
        say(f"{case['name']}: {case['cpu_ms']:.4f} ms")
    record["break_even"] = {name: break_even(name, record["cases"]) for name in vocabularies()}
    say(f"words a frame from which on the atlas is cheaper: {record['break_even']}")
    hand_out(record, out)


def vocabularies() -> dict[str, QueryTerms]:
    """Terms of WORDS phrases: of the attributes encoder, and of the form of an image-text model's words."""
    single = [words[0] for words in SYNONYMS]
    pairs = [f"{one} {other}" for one, other in combinations(single, 2)]
    known = [phrase for phrase in (*single, *pairs) if phrase_terms(phrase).terms][:WORDS]
    attributes = AttributesEncoder().compile([parse(phrase) for phrase in known]).terms
    assert attributes is not None, "all words are known"
    weights = np.random.default_rng(2).normal(size=(WORDS, INPUTS)).astype(np.float32)
    weights[:, COEFFICIENTS:] = 0
    phrases = [parse(f"word{number}") for number in range(WORDS)]
    image_text = query_terms(phrases, [[(each, 0.0)] for each in weights], "sigmoid")
    return {"attributes": attributes, "image-text": image_text}


def measured(name: str, terms: QueryTerms) -> list[dict[str, Any]]:
    """The cases of one vocabulary, timed in turns. Raises RedCheckError where the atlas is not what is on demand."""
    random = np.random.default_rng(1)
    cells = GEOMETRY.grid[0] * GEOMETRY.grid[1]
    inputs = random.random((INPUTS, cells), dtype=np.float32)
    atlas = Atlas(terms, inputs)
    parts = {share: np.sort(random.permutation(cells)[: round(share * cells)]) for share in CHANGED}
    points = np.sort(random.permutation(cells)[:POINTS])
    words = [terms_of(terms, [word]) for word in range(WORDS)]
    together = [terms_of(terms, range(word, word + TOGETHER)) for word in range(0, WORDS, TOGETHER)]
    check(atlas, inputs, parts[CHANGED[0]], words)
    turn = iter(range(10**9))

    def on_demand(at: NDArray[np.intp] | None) -> None:
        word = words[next(turn) % WORDS]
        if at is None:
            relevance(word, inputs)
        else:
            relevance(word, inputs[:, at])

    calls: dict[str, Callable[[], object]] = {
        f"{name}, keep, {share:.0%} changed": lambda at=at: atlas.update(at)  # type: ignore[misc]
        for share, at in parts.items()
    }
    calls |= {
        f"{name}, look up, map": lambda: atlas.maps[next(turn) % WORDS].copy(),
        f"{name}, look up, points": lambda: atlas.maps[next(turn) % WORDS, points],
        f"{name}, on demand, map": lambda: on_demand(None),
        f"{name}, on demand, points": lambda: on_demand(points),
        f"{name}, on demand, {TOGETHER} maps": lambda: relevance(together[next(turn) % len(together)], inputs),
    }
    samples: dict[str, list[float]] = {each: [] for each in calls}
    for run in range(WARM_UP + RUNS):
        for each, call in calls.items():
            start = time.thread_time_ns()
            call()
            if run >= WARM_UP:
                samples[each].append((time.thread_time_ns() - start) / 1e6)
    return [{"name": each, "cpu_ms": median(times), "samples": {"cpu_ms": times}} for each, times in samples.items()]


def terms_of(terms: QueryTerms, words: Sequence[int]) -> QueryTerms:
    """The terms of some consecutive phrases, as queries by themselves."""
    own = np.isin(terms.query, words)
    phrases = tuple(terms.phrases[word] for word in words)
    query = terms.query[own] - np.int32(words[0])
    return QueryTerms(phrases, terms.weights[own], terms.biases[own], query, terms.activation)


def check(atlas: Atlas, inputs: Relevances, cells: NDArray[np.intp], words: list[QueryTerms]) -> None:
    """After an update, the atlas holds what each word has on demand. Raises RedCheckError."""
    inputs[:, cells] = 1 - inputs[:, cells]
    atlas.update(cells)
    expected = np.concatenate([relevance(word, inputs) for word in words])
    if not np.allclose(atlas.maps, expected, atol=1e-5):
        raise RedCheckError("the atlas differs from the relevance computed on demand")


def break_even(name: str, cases: list[dict[str, Any]]) -> dict[str, float]:
    """By share of cells changed: how many maps a frame, asked for together, cost as much as keeping the atlas does."""
    found = {case["name"]: case["cpu_ms"] for case in cases}
    saved = found[f"{name}, on demand, {TOGETHER} maps"] / TOGETHER - found[f"{name}, look up, map"]
    return {f"{share:.0%}": found[f"{name}, keep, {share:.0%} changed"] / saved for share in CHANGED}


if __name__ == "__main__":
    run_module(vocabulary_atlas)
