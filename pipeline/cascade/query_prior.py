"""How a query changes the cost of a cell's errors: it weights them, and assumes detail that coarse tokens hide."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import TOP_LEVEL, Map
from foveate.pipeline.spec import query_prior as spec

OUTSIDE_WEIGHT, FULL_MATCH, DETAIL_WEIGHT, OUTSIDE_DETAIL_WEIGHT, HIDDEN_ERROR = map(
    np.float32,
    (spec.OUTSIDE_WEIGHT, spec.FULL_MATCH, spec.DETAIL_WEIGHT, spec.OUTSIDE_DETAIL_WEIGHT, spec.HIDDEN_ERROR),
)

_SHARES = np.array([0, 1, 2, spec.HIDDEN_AT_LOD_3, spec.HIDDEN_AT_LOD_4], np.float32)
_UPPER = np.float32(spec.HIDDEN_PER_LOD)


def error_weight(participation: Map) -> Map:
    """Weight of a cell's errors, from OUTSIDE_WEIGHT without participation to 1 from FULL_MATCH on. float32[grid].

    Cells that match the query keep the weight they have without one, and all others count less. So at the same budget
    the error left in matching cells is no greater (it never grows with the price of the others: Everett, "Generalized
    Lagrange multiplier method", 1963).
    """
    return OUTSIDE_WEIGHT + (np.float32(1) - OUTSIDE_WEIGHT) * _match(participation)


def detail_weight(participation: Map) -> Map:
    """Further weight of the finest detail, from OUTSIDE_DETAIL_WEIGHT to DETAIL_WEIGHT. float32[grid].

    All that matches reaches LOD 1, where most letters can be read, before its strongest strokes reach LOD 0: a word
    needs each of its letters, and squared error alone sharpens the thick ones first. Where nothing matches, LOD 1 is
    fine enough.
    """
    return OUTSIDE_DETAIL_WEIGHT + (DETAIL_WEIGHT - OUTSIDE_DETAIL_WEIGHT) * _match(participation)


def _match(participation: Map) -> Map:
    """How far a cell matches: 1 from FULL_MATCH on, less in proportion below. float32[grid]."""
    return np.minimum(participation / FULL_MATCH, np.float32(1))


def hidden_share(lod: NDArray[np.uint8] | int) -> NDArray[np.float32]:
    """Error assumed hidden at a LOD, in units of HIDDEN_ERROR: 0, 1, 2, 6 and 22 at LODs 0 to 4, 16 more per LOD above.

    LOD 1 hides 2 grey values from LOD 0, LOD 2 another 2 from LOD 1, LOD 3 another 4, LOD 4 another 8. On a large
    object each refinement then gains at most a quarter per token of the one before: the whole object reaches LOD 2,
    then 1, then 0, as far as the budget goes. Larger numbers make text less readable: they take tokens from strokes and
    give them to the blank paper beside them.
    """
    level = np.asarray(lod, np.int32)
    return _SHARES[np.minimum(level, TOP_LEVEL)] + _UPPER * np.maximum(level - TOP_LEVEL, 0).astype(np.float32)


def hidden_error(participation: Map, weight: Map) -> Map:
    """The squared error which, times ``weight``, is HIDDEN_ERROR times the participation squared."""
    return np.asarray(
        HIDDEN_ERROR * participation * participation / np.maximum(weight, np.float32(spec.LEAST_WEIGHT)), np.float32
    )


def errors_with_prior(errors: Sequence[Map], finest: Map, hidden: Map, participation: Map) -> tuple[Map, ...]:
    """Squared errors of LODs 1, 2, 3, 4 ... of each cell with the query prior: float32[grid] each.

    Without the hidden error, a plain red car would stay coarse, as it has no detail to lose. Of the detail that only
    LOD 0 shows, ``finest``, a share counts; see detail_weight.
    """
    ignored = _ignored_detail(finest, participation)
    return tuple(np.maximum(error - ignored, 0) + hidden * hidden_share(lod) for lod, error in enumerate(errors, 1))


def reader_error_with_prior(
    kept: Map, lod: NDArray[np.uint8], stale: Map, finest: Map, hidden: Map, participation: Map
) -> Map:
    """The same for the reader's picture, by the LOD at which it last saw each cell; errors count ``stale`` times.

    A cell last seen at LOD 0 lacks no detail: all of its error is what has changed there since.
    """
    ignored = np.where(lod == 0, np.float32(0), _ignored_detail(finest, participation))
    return np.maximum(kept - ignored, 0) * stale + hidden * hidden_share(lod)


def _ignored_detail(finest: Map, participation: Map) -> Map:
    """The part of LOD 1's error that does not count."""
    return finest * (np.float32(1) - detail_weight(participation))


def stale_weight(peak: Map, participation: Map) -> Map:
    """Factor, at least 1, for errors where the reader may still see a matching object that has left.

    ``peak`` is the greatest participation since the reader last saw the cell; the error is weighted by that instead of
    today's. Showing the cell again, however coarsely, resets it.
    """
    return np.maximum(error_weight(peak) / error_weight(participation), np.float32(1))
