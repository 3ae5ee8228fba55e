"""How relevant each cell is to what is looked for, frame by frame."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from foveate.pipeline.cascade.feedback import Fed
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.encoder import Embedder, View, place
from foveate.pipeline.query.program import (
    COEFFICIENTS,
    INPUTS,
    Map,
    Program,
    coefficients_read,
    participation,
    relevance,
)
from foveate.pipeline.relevance.asked import Asked


class Interest:
    """Keeps the embeddings of a stream of frames of one size, and asks them."""

    def __init__(self, asked: Asked, geometry: Geometry, names: Collection[str] = ()) -> None:
        """``names``: the maps that will be asked for, among others."""
        self._asked = asked
        self._program = asked.program
        self._read = coefficients_read(asked.program)
        self._maps_query = not {"query", "query_similarity"}.isdisjoint(names)
        embeddings = {int(name.removeprefix(EMBEDDING)) for name in names if name.startswith(EMBEDDING)}
        self._mapped = frozenset(embeddings).union(*(coefficients_read(program) for program in asked.maps.values()))
        self._embedder: Embedder = asked.encoder.embedder(geometry)
        self._inputs = np.zeros((INPUTS, *geometry.grid), np.float32)
        self._inputs[COEFFICIENTS:] = place(geometry)
        self.age: int | None = None  # of the last frame's embeddings; None while there are none

    def feed(self, fed: Fed) -> None:
        """Take in another query than that of the settings, if there is one."""
        if fed.queries is not None:
            self._program = fed.program
            self._read = coefficients_read(fed.program)

    @property
    def wanted(self) -> frozenset[int]:
        """The coefficients that the queries or the maps read."""
        return self._read | self._mapped

    def asks_attribute(self, index: int) -> bool:
        """Whether the queries or the maps read coefficient ``index`` as the attributes encoder means it."""
        return self._asked.encoder.name == "attributes" and index in self.wanted

    @property
    def mapped(self) -> frozenset[int]:
        """Those that the maps read."""
        return self.wanted if self._maps_query else self._mapped

    def look(self, view: View) -> None:
        """Bring the embeddings up to one frame."""
        embedded = self._embedder.update(view)
        self.age = None if embedded is None else embedded.age
        if embedded is None:
            self._inputs[:COEFFICIENTS] = 0
        else:
            for index in view.wanted:
                self._inputs[index] = embedded.coefficients[index]

    @property
    def query(self) -> Program | None:
        """What is asked now; None where there is no query."""
        return self._program

    @property
    def program(self) -> Program | None:
        """What the last frame is asked; None where there is no query, or no embedding yet."""
        return None if self.age is None else self._program

    def participation(self) -> Map | None:
        """How much each cell of the last frame takes part, float32[grid] in [0, 1]; None where nothing is asked."""
        return self._participation(self._program)

    def extras(self, fed: Fed) -> dict[str, Any]:
        """For the record: another query, on the first frame that it is asked of; how old a model's embeddings are."""
        told: dict[str, Any] = {"query": fed.queries} if fed.query_changed else {}
        if fed.query_changed and fed.ignored:
            told["query_ignored"] = fed.ignored
        return told if self._asked.encoder.name == "attributes" else {**told, "embedding_age": self.age}

    @property
    def settled(self) -> bool:
        """True where another frame without any change would find the same."""
        return self._embedder.settled

    def map(self, name: str) -> Map:
        """The last frame's map "query", "query:TEXT" as asked for, or clip<index>: float32[grid] of its own.

        0 where nothing is understood.
        """
        if name.startswith(EMBEDDING):
            return self._inputs[int(name.removeprefix(EMBEDDING))].copy()
        found = self._participation(self._program if name == "query" else self._asked.maps[name])
        return np.zeros(self._inputs.shape[1:], np.float32) if found is None else found

    @property
    def coefficients(self) -> Map:
        """What was wanted of the last frame's embedding channels, float32[COEFFICIENTS, grid].

        Overwritten by the next frame's.
        """
        return self._inputs[:COEFFICIENTS]

    def close(self) -> None:
        """End the embedder's threads. Safe to call twice."""
        self._embedder.close()

    def _participation(self, program: Program | None) -> Map | None:
        return None if program is None or self.age is None else participation(program, relevance(program, self._inputs))
