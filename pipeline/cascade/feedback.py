"""Feedback while a stream runs: gaze, attention of a model to tokens, budget and queries."""

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.coverage import spread_tokens
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.geometry import Geometry, Map
from foveate.pipeline.query.terms import QueryTerms
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import shown_value

_REMEMBERED = 64  # frames whose tokens can still be given attention
_FARTHEST = 1_000_000  # pixels of a gaze from the picture's corner, on either axis


class _Remembered(NamedTuple):
    """The tokens of one frame."""

    lod: NDArray[np.uint8]
    x: NDArray[np.int32]  # centres, level-0 pixels
    y: NDArray[np.int32]
    geometry: Geometry


@dataclass(frozen=True, slots=True)
class FrameFeedback:
    """The feedback that one frame takes into account."""

    gaze: tuple[float, float] | None
    gaze_moved: bool
    attention: Map | None  # float32[grid]
    budget: int | None = None  # instead of the settings'
    budget_changed: bool = False
    queries: tuple[str, ...] | None = None  # instead of the settings'
    terms: QueryTerms | None = None  # compiled; None if nothing was understood
    ignored: tuple[str, ...] = ()  # words without effect
    query_changed: bool = False

    @property
    def anything(self) -> bool:
        """True if there is any new feedback."""
        return self.gaze_moved or self.budget_changed or self.query_changed or self.attention is not None


def _point(values: tuple[object, object]) -> tuple[float, float]:
    """Two numbers of any type as floats. Raises ValueError for anything else, and beyond a million."""
    try:
        x, y = (float(value) for value in values if not isinstance(value, (bool, np.bool_, str, bytes)))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        x = y = math.nan
    if not (abs(x) <= _FARTHEST and abs(y) <= _FARTHEST):
        raise ValueError(f"gaze must be two numbers from {-_FARTHEST} to {_FARTHEST}, got {shown_value(values)}")
    return x, y


def checked_attention(weights: NDArray[np.floating], tokens: int) -> NDArray[np.float32]:
    """The weights that a model gave to so many tokens. Raises ValueError for another length, or outside [0, 1]."""
    weights = np.asarray(weights, np.float32)
    if weights.shape != (tokens,):
        raise ValueError(f"attention must have one weight per token, {tokens}, got shape {weights.shape}")
    if not ((weights >= 0) & (weights <= 1)).all():
        raise ValueError("attention must lie in [0, 1]")
    return weights


class Feedback:
    """Passes feedback from the caller's thread to the Cascade. It takes effect with the next frame."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending = False  # whether there is new feedback
        self._latest = self._next = FrameFeedback(None, False, None)  # without and with what is new
        self.keyframe_interval: int | None = None  # instead of the settings'; read by the Upload stage
        self._attention: list[tuple[int, NDArray[np.float32]]] = []
        self._tokens: OrderedDict[int, _Remembered] = OrderedDict()

    def set_gaze(self, point: tuple[float, float] | None) -> None:
        """Set the gaze to (x, y), in level-0 pixels; None: no gaze. Raises ValueError for a point far outside."""
        self._set(gaze=None if point is None else _point(point), gaze_moved=True)

    def set_budget(self, budget: int) -> None:
        """Set the most tokens per frame, from the next frame on."""
        self._set(budget=budget, budget_changed=True)

    def set_query(self, queries: tuple[str, ...], terms: QueryTerms | None, ignored: tuple[str, ...] = ()) -> None:
        """Replace the query from the next frame on. ``terms`` are the compiled ``queries``; None: no query.

        ``ignored``: words of the queries without effect.
        """
        self._set(queries=queries, terms=terms, ignored=ignored, query_changed=True)

    def _set(self, **changes: Any) -> None:
        with self._lock:
            self._next = replace(self._next, **changes)
            self._pending = True

    def resend_gaze(self) -> None:
        """Report the gaze again, to a Cascade that starts because the frame size changed."""
        if self._next.gaze is not None:
            self._set(gaze_moved=True)

    def add_attention(self, index: int, weights: NDArray[np.floating]) -> None:
        """Weights float[K] in [0, 1] that the model gave to the tokens of frame ``index``, in the Selection's order.

        Raises ValueError for another length, weights outside [0, 1], or a frame that is no longer remembered.
        """
        with self._lock:
            if index not in self._tokens:
                raise ValueError(f"attention must be for one of the last {_REMEMBERED} frames, got frame {index}")
            self._attention.append((index, checked_attention(weights, len(self._tokens[index].lod))))
            self._pending = True

    def remember(self, selection: Selection, geometry: Geometry) -> None:
        """Keep the tokens of a frame, so that attention to them can be mapped to cells."""
        with self._lock:
            self._tokens[selection.index] = _Remembered(selection.lod, selection.x, selection.y, geometry)
            while len(self._tokens) > _REMEMBERED:
                self._tokens.popitem(last=False)

    def take(self, geometry: Geometry) -> FrameFeedback:
        """Feedback since the last call; attention to frames of another size is dropped."""
        if not self._pending:  # as for nearly every frame
            return self._latest
        with self._lock:
            self._pending = False
            attention = None
            for index, weights in self._attention:
                remembered = self._tokens.get(index)
                if remembered is not None and remembered.geometry == geometry:
                    tokens = Tokens.at_centres(remembered.lod, remembered.x, remembered.y)
                    spread = spread_tokens(tokens, weights, geometry)
                    attention = spread if attention is None else np.maximum(attention, spread)
            self._attention.clear()
            feedback = replace(self._next, attention=attention)
            self._latest = self._next = replace(self._next, gaze_moved=False, budget_changed=False, query_changed=False)
            return feedback
