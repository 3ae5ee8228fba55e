"""What a query makes of a cell's errors: how much they count, and what coarse tokens may hide there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Map
from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.spec import query_prior

OUTSIDE, ASIDE, HIDDEN = (np.float32(value) for value in (query_prior.OUTSIDE, query_prior.ASIDE, query_prior.HIDDEN))

_SHARES, _UPPER = np.array([0, 1, 2, 6, 22], np.float32), np.float32(16)


def counted(participation: Map) -> Map:
    """What an error counts by the cell's participation: OUTSIDE to 1, in a straight line. float32[grid].

    What is asked for weighs as it does without a query, and the rest less; so at the same budget the error that is left
    in what is asked for is no greater (it never grows with the price of the rest: Everett, "Generalized Lagrange
    multiplier method", 1963).
    """
    return OUTSIDE + (np.float32(1) - OUTSIDE) * participation


def hidden_share(lod: NDArray[np.uint8] | int) -> NDArray[np.float32]:
    """What may be hidden at a LOD, in units of HIDDEN: 0, 1, 2, 6 and 22 at LODs 0 to 4, and 16 more at each above.

    LOD 1 hides 4 grey values from LOD 0, LOD 2 another 4 from LOD 1, LOD 3 another 8, LOD 4 another 16. Over a thing of
    some size a token then gains a quarter, or less, of what one of the step before did: all that is asked for reaches
    LOD 2, then 1, then 0, as far as the budget goes. Greater numbers make text less readable: they take tokens from
    strokes and give them to the paper beside them.
    """
    level = np.asarray(lod, np.int32)
    return _SHARES[np.minimum(level, TOP_LEVEL)] + _UPPER * np.maximum(level - TOP_LEVEL, 0).astype(np.float32)


def hidden_error(participation: Map, weight: Map) -> Map:
    """The squared error that counts HIDDEN times the participation squared, whatever the cell's weight is."""
    return np.asarray(
        HIDDEN * participation * participation / np.maximum(weight, np.float32(query_prior.LEAST_WEIGHT)), np.float32
    )


def with_prior(errors: Sequence[Map], finest: Map, hidden: Map, participation: Map) -> tuple[Map, ...]:
    """Squared errors of LODs 1, 2, 3, 4 ... of each cell, with what a query may find hidden there: float32[grid] each.

    Pictures without detail would show it nowhere: a plain red car would stay coarse. Where nothing is asked for, the
    detail that only LOD 0 shows, ``finest``, counts less, down to ASIDE: LOD 1 will do for a background.
    """
    aside = _aside(finest, participation)
    return tuple(np.maximum(error - aside, 0) + hidden * hidden_share(lod) for lod, error in enumerate(errors, 1))


def held_with_prior(
    kept: Map, lod: NDArray[np.uint8], ghosts: Map, finest: Map, hidden: Map, participation: Map
) -> Map:
    """The same for what the reader holds, by the LOD at which it saw each cell last; errors count ``ghosts`` times."""
    return np.maximum(kept - _aside(finest, participation), 0) * ghosts + hidden * hidden_share(lod)


def _aside(finest: Map, participation: Map) -> Map:
    """The part of LOD 1's error that does not count."""
    return finest * (np.float32(1) - np.minimum(ASIDE + 2 * participation, np.float32(1)))


def ghosts(marked: Map, participation: Map) -> Map:
    """How many times the error counts where the reader may see something that took part and has gone: at least 1.

    It counts by the participation from when the reader saw the cell on, ``marked``. Seeing the cell once more, however
    coarsely, ends it.
    """
    return np.maximum(counted(marked) / counted(participation), np.float32(1))
