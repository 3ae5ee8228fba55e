"""The interface of query encoders, and what they get of each frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.flow import Flow
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry, Map, Mask
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.query.terms import COEFFICIENTS, QueryTerms
from foveate.pipeline.selection import KeyframeReason


class CompiledQuery(NamedTuple):
    """The result of compiling queries."""

    terms: QueryTerms | None  # None if nothing was understood
    notes: tuple[str, ...] = ()  # one line each: what was not understood
    ignored: tuple[str, ...] = ()  # words without effect, as they were written
    refused: tuple[str, ...] = ()  # one line for each query that was not understood at all, with advice


@dataclass(frozen=True, slots=True, eq=False)
class EmbedderInput:
    """What an Embedder gets of one frame."""

    frame: FrameView
    geometry: Geometry
    keyframe: KeyframeReason | None
    changed: Mask  # bool[grid]
    flow: Flow | None  # None on keyframes, and if nothing moved
    valid: Mask  # bool[grid]: cells whose warped values may be reused
    grid: Mapping[str, Map]  # channels by name, float32[grid]; for the attributes encoder also those made from pixels
    wanted: frozenset[int] = frozenset(range(COEFFICIENTS))  # coefficients that are read; the others are undefined


class Embedded(NamedTuple):
    """The embedding channels of one frame."""

    coefficients: Map  # float32[COEFFICIENTS, grid]; those wanted are valid
    age: int  # frames since the pixels that they were computed from; of several, the oldest


class Embedder(Protocol):
    """Keeps the embedding channels of a stream of frames of one size up to date."""

    def update(self, view: EmbedderInput) -> Embedded | None:
        """The embeddings at this frame; None while there are none. Called once for each frame with any change."""

    @property
    def settled(self) -> bool:
        """True if another frame without any change would have the same embeddings."""

    def close(self) -> None:
        """Stop its threads. Safe to call twice."""


class QueryEncoder(Protocol):
    """Compiles queries. One per stream; thread-safe."""

    @property
    def name(self) -> str:
        """The value of the setting ``encoder``."""

    def compile(self, phrases: Sequence[Phrase]) -> CompiledQuery:
        """The terms for ``phrases``. Raises SettingsError."""

    def embedder(self, geometry: Geometry) -> Embedder:
        """A new Embedder for frames of this size."""


def cell_positions(geometry: Geometry) -> NDArray[np.float32]:
    """x and y of each cell's centre, as a share of the picture's width and height, at most 1: float32[2, grid]."""
    rows, columns = geometry.grid
    x = np.minimum((np.arange(columns, dtype=np.float32) + np.float32(0.5)) * np.float32(16 / geometry.width), 1)
    y = np.minimum((np.arange(rows, dtype=np.float32) + np.float32(0.5)) * np.float32(16 / geometry.height), 1)
    return np.stack([np.broadcast_to(x, (rows, columns)), np.broadcast_to(y[:, None], (rows, columns))])
