"""What a relevant cell may hide: an error that is expected of coarse tokens there, whatever the pixels say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.problem import Map

HIDDEN = np.float32(64.0**2 * 256)
"""Squared error of a cell of full participation that is shown by a single value: 64 grey values at each pixel."""


def with_prior(errors: Sequence[Map], participation: Map) -> tuple[Map, ...]:
    """Squared errors of LODs 1, 2, 3, 4 of each cell, and what may be hidden from a query there: float32[grid] each.

    Pictures without detail would show it nowhere: a plain red car would stay coarse. At LOD l, 1 - 4**-l of HIDDEN is
    added, times the participation squared; so each step to finer tokens takes away as much per token.
    """
    hidden = HIDDEN * participation * participation
    return tuple(error + hidden * _share(lod) for lod, error in enumerate(errors, 1))


def held_with_prior(kept: Map, lod: NDArray[np.uint8], participation: Map) -> Map:
    """The same for what the reader holds, by the LOD at which it saw each cell last."""
    return kept + HIDDEN * participation * participation * (np.float32(1) - np.float32(0.25) ** lod.astype(np.float32))


def _share(lod: int) -> np.float32:
    return np.float32(1 - 0.25**lod)
