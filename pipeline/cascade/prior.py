"""What a relevant cell may hide: an error that is expected of coarse tokens there, whatever the pixels say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Map

HIDDEN = np.float32(64.0**2 * 256)
"""Weighted squared error of a cell of full participation that is shown by a single value: 64 grey values a pixel."""


ASIDE = np.float32(0.1)
"""What the finest detail, that of LOD 0 against LOD 1, counts in cells without any participation."""


def with_prior(errors: Sequence[Map], finest: Map, hidden: Map, participation: Map) -> tuple[Map, ...]:
    """Squared errors of LODs 1, 2, 3, 4 of each cell, with what a query may find hidden there: float32[grid] each.

    Pictures without detail would show it nowhere: a plain red car would stay coarse. At LOD l, 1 - 4**-l of ``hidden``
    is added; so each step to finer tokens takes away as much per token. Where nothing is asked for, the detail that
    only LOD 0 shows, ``finest``, counts less, down to ASIDE: LOD 1 will do for a background.
    """
    aside = _aside(finest, participation)
    return tuple(
        np.maximum(error - aside, 0) + hidden * np.float32(1 - 0.25**lod) for lod, error in enumerate(errors, 1)
    )


def held_with_prior(
    kept: Map, lod: NDArray[np.uint8], ghosts: Map, finest: Map, hidden: Map, participation: Map
) -> Map:
    """The same for what the reader holds, by the LOD at which it saw each cell last; errors count ``ghosts`` times."""
    counts = np.maximum(kept - _aside(finest, participation), 0) * ghosts
    return counts + hidden * (np.float32(1) - np.float32(0.25) ** lod.astype(np.float32))


def ghosts(marked: Map, participation: Map, weight: Map) -> Map:
    """How many times the error counts where the reader may see something that took part and has gone: at least 1.

    A cell's weight grows by as much as the square of its participation fell since the reader saw it, from ``marked``:
    what is hidden counts by that square. Seeing the cell once more, however coarsely, ends it.
    """
    fallen = np.maximum(marked * marked - participation * participation, 0)
    return np.asarray(1 + fallen / np.maximum(weight, np.float32(1e-6)), np.float32)


def _aside(finest: Map, participation: Map) -> Map:
    """The part of LOD 1's error that does not count."""
    return finest * (np.float32(1) - np.minimum(ASIDE + 2 * participation, np.float32(1)))


def hidden_error(participation: Map, weight: Map) -> Map:
    """The squared error that counts HIDDEN times the participation squared, whatever the cell's weight is."""
    return np.asarray(HIDDEN * participation * participation / np.maximum(weight, np.float32(1e-6)), np.float32)
