"""What understands queries: the interface of the encoders, and what they are shown of each frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.flow import Flow, Map
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.query.program import COEFFICIENTS, Program
from foveate.pipeline.selection import KeyframeReason


class Compiled(NamedTuple):
    """What an encoder made of queries."""

    program: Program | None  # None where nothing of them was understood
    notes: tuple[str, ...] = ()  # one line each: what was not understood
    ignored: tuple[str, ...] = ()  # the words that count for nothing, as they were written
    refused: tuple[str, ...] = ()  # one line for each query of which nothing was understood, with what to do


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One frame, as the Cascade sees it when the embeddings are asked for."""

    frame: FrameView
    geometry: Geometry
    keyframe: KeyframeReason | None
    changed: Mask  # bool[grid]
    flow: Flow | None  # None on keyframes, and where nothing moved
    valid: Mask  # bool[grid]: cells whose carried maps may be reused
    grid: Mapping[str, Map]  # channels by name, float32[grid]; with the attributes encoder its pixels' channels too
    wanted: frozenset[int] = frozenset(range(COEFFICIENTS))  # coefficients that are read; others may hold anything


class Embedded(NamedTuple):
    """The embedding channels of one frame."""

    coefficients: Map  # float32[COEFFICIENTS, grid]; at least what the View wants of them
    age: int  # frames since the pixels that they were computed from, or the oldest of them


class Embedder(Protocol):
    """Keeps the embedding channels of one stream of frames of one size."""

    def update(self, view: View) -> Embedded | None:
        """This frame's; None while there are none yet. Called once for every frame that differs from the last."""

    @property
    def settled(self) -> bool:
        """True where another frame without any change would have the same embeddings."""

    def close(self) -> None:
        """End its threads. Safe to call twice."""


class QueryEncoder(Protocol):
    """Understands queries. One for a stream; asked by any thread."""

    @property
    def name(self) -> str:
        """As the settings name it."""

    def compile(self, phrases: Sequence[Phrase]) -> Compiled:
        """The program for ``phrases``. Raises SettingsError."""

    def embedder(self, geometry: Geometry) -> Embedder:
        """A new Embedder."""


def place(geometry: Geometry) -> NDArray[np.float32]:
    """x and y of each cell's centre / the picture's size, at most 1: float32[2, grid]."""
    rows, columns = geometry.grid
    x = np.minimum((np.arange(columns, dtype=np.float32) + np.float32(0.5)) * np.float32(16 / geometry.width), 1)
    y = np.minimum((np.arange(rows, dtype=np.float32) + np.float32(0.5)) * np.float32(16 / geometry.height), 1)
    return np.stack([np.broadcast_to(x, (rows, columns)), np.broadcast_to(y[:, None], (rows, columns))])
