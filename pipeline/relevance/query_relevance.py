"""The relevance of each cell to the queries, frame by frame."""

from collections.abc import Collection
from typing import Any

import numpy as np

from foveate.pipeline.cascade.feedback import FrameFeedback
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.geometry import Geometry, Map
from foveate.pipeline.query.encoder import Embedder, EmbedderInput, cell_positions
from foveate.pipeline.query.terms import (
    COEFFICIENTS,
    INPUTS,
    QueryTerms,
    coefficients_read,
    combined_relevance,
    relevance,
)
from foveate.pipeline.relevance.stream_query import StreamQuery


class QueryRelevance:
    """Keeps the embeddings of a stream of frames of one size, and evaluates queries on them."""

    def __init__(self, query: StreamQuery, geometry: Geometry, names: Collection[str] = ()) -> None:
        """``names``: the maps that will be requested; other names are ignored."""
        self._stream_query = query
        self._terms = query.terms
        self._read = coefficients_read(query.terms)
        self._maps_query = not {"query", "query_similarity"}.isdisjoint(names)
        embeddings = {int(name.removeprefix(EMBEDDING)) for name in names if name.startswith(EMBEDDING)}
        self._mapped = frozenset(embeddings).union(*(coefficients_read(terms) for terms in query.maps.values()))
        self._embedder: Embedder = query.encoder.embedder(geometry)
        self._inputs = np.zeros((INPUTS, *geometry.grid), np.float32)
        self._inputs[COEFFICIENTS:] = cell_positions(geometry)
        self.age: int | None = None  # of the last frame's embeddings, in frames; None while there are none

    def take(self, feedback: FrameFeedback) -> None:
        """Replace the query of the settings, if another one was set."""
        if feedback.queries is not None:
            self._terms = feedback.terms
            self._read = coefficients_read(feedback.terms)

    @property
    def wanted(self) -> frozenset[int]:
        """The coefficients that the queries or the maps read."""
        return self._read | self._mapped

    def asks_attribute(self, index: int) -> bool:
        """Whether the encoder is that of attributes, and the queries or the maps read coefficient ``index``."""
        return self._stream_query.encoder.name == "attributes" and index in self.wanted

    @property
    def mapped(self) -> frozenset[int]:
        """The coefficients that the maps read."""
        return self.wanted if self._maps_query else self._mapped

    def update(self, frame: EmbedderInput) -> None:
        """Update the embeddings to one frame."""
        embedded = self._embedder.update(frame)
        self.age = None if embedded is None else embedded.age
        if embedded is None:
            self._inputs[:COEFFICIENTS] = 0
        else:
            for index in frame.wanted:
                self._inputs[index] = embedded.coefficients[index]

    @property
    def terms(self) -> QueryTerms | None:
        """Terms of the current query; None if there is none."""
        return self._terms

    @property
    def usable_terms(self) -> QueryTerms | None:
        """Terms of the current query; None without a query, or while there are no embeddings to apply them to."""
        return None if self.age is None else self._terms

    def combined(self) -> Map | None:
        """Relevance of each cell of the last frame, float32[grid] in [0, 1]; None without a query or embeddings."""
        return self._combined(self._terms)

    def extras(self, feedback: FrameFeedback) -> dict[str, Any]:
        """Fields of the record: a new query, on its first frame; the age of a model's embeddings."""
        extras: dict[str, Any] = {"query": feedback.queries} if feedback.query_changed else {}
        if feedback.query_changed and feedback.ignored:
            extras["query_ignored"] = feedback.ignored
        return extras if self._stream_query.encoder.name == "attributes" else {**extras, "embedding_age": self.age}

    @property
    def settled(self) -> bool:
        """True if another frame without any change would have the same relevance."""
        return self._embedder.settled

    def map(self, name: str) -> Map:
        """The last frame's map "query", a requested "query:TEXT", or clip<index>: a new float32[grid].

        Zeros if the query was not understood.
        """
        if name.startswith(EMBEDDING):
            return self._inputs[int(name.removeprefix(EMBEDDING))].copy()
        found = self._combined(self._terms if name == "query" else self._stream_query.maps[name])
        return np.zeros(self._inputs.shape[1:], np.float32) if found is None else found

    @property
    def coefficients(self) -> Map:
        """The last frame's embedding channels, float32[COEFFICIENTS, grid]; the next frame overwrites them."""
        return self._inputs[:COEFFICIENTS]

    def close(self) -> None:
        """Stop the embedder's threads. Safe to call twice."""
        self._embedder.close()

    def _combined(self, terms: QueryTerms | None) -> Map | None:
        return None if terms is None or self.age is None else combined_relevance(terms, relevance(terms, self._inputs))
