"""What can be changed while a stream runs: query, budget, keyframe interval, gaze, attention."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.keywords import overridden
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.relevance.stream_query import compile_queries
from foveate.pipeline.settings import Settings


class StreamControls:
    """The methods of all streams that change them while they run; for the caller's thread."""

    def __init__(self, plan: StreamPlan, feedback: Feedback) -> None:
        self.settings = plan.settings
        self._feedback = feedback
        queries = plan.queries
        self._encoder = queries.encoder if queries else None
        self._query_notes = queries.notes if queries else ()

    @property
    def query_notes(self) -> tuple[str, ...]:
        """What is not understood of what is looked for now, a line each."""
        return self._query_notes

    def set_gaze(self, x: float, y: float) -> None:
        """Look at (x, y), in level-0 pixels, from the next frame on; it may lie outside the picture.

        Raises ValueError for what is no number, or beyond a million.
        """
        self._feedback.set_gaze((x, y))

    def clear_gaze(self) -> None:
        """Look at nothing in particular: the centre counts again."""
        self._feedback.set_gaze(None)

    def set_query(self, queries: Sequence[str]) -> tuple[str, ...]:
        """Look for ``queries``, written as in the settings, from the next frame on; none: for nothing in particular.

        They take the place of all that was looked for, pictures (``query_image``) as well.
        Returns what was not understood, a line each. The embeddings that are there are asked; nothing is encoded
        again. Raises ValueError for what the settings refuse, for a query of which nothing is understood unless
        ``query_lenient``, and where the stream keeps no embeddings; the query before stays then.
        """
        if self._encoder is None:
            raise ValueError("to set a query later, open the stream with a query or with keep_embeddings=True")
        try:
            compiled = compile_queries(self._encoder, queries, lenient=self.settings.query_lenient)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        self._feedback.set_query(tuple(queries), compiled.terms, compiled.ignored)
        self._query_notes = compiled.notes
        return compiled.notes

    def set_budget(self, budget: int) -> None:
        """Give at most ``budget`` tokens a frame from the next one on; on average with ``allocation.budget_average``.

        Raises ValueError for what the settings refuse.
        """
        self._feedback.set_budget(self._changed({"budget": budget}).budget)

    def set_keyframe_interval(self, frames: int) -> None:
        """Make a periodic keyframe every so many frames from now on. Raises ValueError for what the settings refuse."""
        changed = self._changed({"change": {"keyframe_interval": frames}})
        self._feedback.keyframe_interval = changed.change.keyframe_interval

    def _changed(self, changes: Mapping[str, object]) -> Settings:
        """The settings with ``changes``. Raises ValueError if they are not allowed."""
        try:
            return overridden(self.settings, changes)
        except SettingsError as error:
            raise ValueError(str(error)) from None

    def add_attention(self, index: int, weights: NDArray[np.floating]) -> None:
        """Feed back what attention, float[K] in [0, 1], the model gave to the tokens of frame ``index``.

        Raises ValueError for a frame that is no longer remembered, or weights of another length or range.
        """
        self._feedback.add_attention(index, weights)
