"""How relevant each cell is to what is looked for, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foveate.pipeline.cascade.feedback import Fed
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.asked import Asked
from foveate.pipeline.query.encoder import Embedder, View, place
from foveate.pipeline.query.program import COEFFICIENTS, INPUTS, Map, Program, participation, relevance


@dataclass(frozen=True, slots=True, eq=False)
class Relevant:
    """One frame's."""

    inputs: Map  # float32[INPUTS, grid]; overwritten by the next frame
    participation: Map | None  # float32[grid] in [0, 1]; None where there is no query, or no embedding yet


class Interest:
    """Keeps the embeddings of a stream of frames of one size, and asks them."""

    def __init__(self, asked: Asked, geometry: Geometry) -> None:
        self._asked = asked
        self._program = asked.program
        self._embedder: Embedder = asked.encoder.embedder(geometry)
        self._inputs = np.empty((INPUTS, *geometry.grid), np.float32)
        self._inputs[COEFFICIENTS:] = place(geometry)
        self.age: int | None = None  # of the last frame's embeddings; None while there are none

    def feed(self, fed: Fed) -> None:
        """Take in another query than that of the settings, if there is one."""
        if fed.queries is not None:
            self._program = fed.program

    def look(self, view: View) -> Relevant:
        """The relevance of one frame's cells."""
        embedded = self._embedder.update(view)
        self.age = None if embedded is None else embedded.age
        if embedded is None:
            self._inputs[:COEFFICIENTS] = 0
            return Relevant(self._inputs, None)
        self._inputs[:COEFFICIENTS] = embedded.coefficients
        return Relevant(self._inputs, self._participation(self._program))

    @property
    def settled(self) -> bool:
        """True where another frame without any change would find the same."""
        return self._embedder.settled

    def map(self, name: str) -> Map:
        """The last frame's map "query", or "query:TEXT" as asked for: float32[grid]; 0 where nothing is understood."""
        found = self._participation(self._program if name == "query" else self._asked.maps[name])
        return np.zeros(self._inputs.shape[1:], np.float32) if found is None else found

    def coefficients(self, index: int) -> Map:
        """The last frame's channel clip<index>, float32[grid]."""
        return self._inputs[index].copy()

    def close(self) -> None:
        """End the embedder's threads. Safe to call twice."""
        self._embedder.close()

    def _participation(self, program: Program | None) -> Map | None:
        return None if program is None or self.age is None else participation(program, relevance(program, self._inputs))
