"""Token age: frames since each cell's pixels changed, and which changes no token has shown yet."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.coverage import Coverage, spread_tokens
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.geometry import Geometry, Mask

_NEVER = np.iinfo(np.int32).max


class TokenAges(NamedTuple):
    """Per token; length K."""

    age: NDArray[np.int32]  # frames since its pixels last changed
    fresh: NDArray[np.bool_]  # changed or moved since last emitted there


class AgeMaps:
    """int32 ages of the cells, and which of them changed since a token was last emitted there."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self._age = np.zeros(geometry.grid, np.int32)
        self._pending = np.ones(geometry.grid, np.bool_)

    def advance(self, changed: Mask, cut: bool) -> None:
        """Advance by one frame. ``changed`` is bool[grid]; ``cut``: a new scene, in which every cell is new."""
        if cut:
            self._age[:] = 0
            self._pending[:] = True
            return
        self.advance_unchanged()
        self._age[changed] = 0
        self._pending |= changed

    def advance_unchanged(self) -> None:
        """Advance by one frame in which nothing changed."""
        self._age += 1

    def emit(self, tokens: Tokens, coverage: Coverage) -> TokenAges:
        """Age and freshness of ``tokens``, whose cells are then marked as emitted."""
        age, settled = coverage.minima(np.stack([self._age, ~self._pending]), _NEVER)
        if coverage.everywhere:
            self._pending[:] = False
        else:
            self._pending &= spread_tokens(tokens, np.ones(len(tokens.lod), np.float32), self._geometry) == 0
        return TokenAges(np.where(age == _NEVER, np.int32(0), age), settled == 0)
