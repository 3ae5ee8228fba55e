"""Scene cuts: frames whose structure does not resemble that of the frame before."""

from __future__ import annotations

import math

from foveate.pipeline.frames import Plane
from foveate.pipeline.geometry import CELL, TILE, Mask
from foveate.pipeline.native.cuts import Structure, product, structure
from foveate.pipeline.settings import ChangeSettings
from foveate.pipeline.spec.cuts import CUT_PLAIN


def least_energy(tiles: int) -> float:
    """Sum of the squares of a structure of ``tiles`` tiles, from which on it shows anything.

    That of a tile is four times the sum of the squares of what its cells' sums exceed their mean by.
    """
    per_tile = (TILE // CELL) ** 2
    return max(1.0, tiles * per_tile**2 * (CUT_PLAIN * CELL * CELL) ** 2)


def least_likeness(settings: ChangeSettings) -> float:
    """Correlation of the structures of two frames from which on they show the same."""
    return 1 - 2 * settings.cut_structure if settings.cut_structure < 1 else -math.inf


class SceneCuts:
    """Finds the cuts of a stream of frames of one size.

    A frame in which most tiles changed is compared with the frame before; where that shows nothing (black, or a flash),
    with the last one that does. It is a cut where the two do not resemble each other, unless the same was so a frame
    before: what changes for several frames, such as a whip pan, is one cut. A frame that shows nothing is no cut.
    """

    def __init__(self, settings: ChangeSettings) -> None:
        self._share = settings.cut_share
        self._alike = least_likeness(settings)
        self.reset()

    def reset(self) -> None:
        """Begin with a new stream."""
        self._steady = True  # the frame before resembled the one before it
        self._shown: Structure | None = None  # of the last frame that shows anything, where the one before does not

    def is_cut(self, luma: Plane, before: Plane, changed: Mask) -> bool:
        """Whether a frame is a cut. ``before`` is the frame before, uint8[H, W] both; ``changed``: what differs."""
        if changed.sum() < self._share * changed.size:
            self._steady = True
            return False
        return self._begins(structure(luma), structure(before))

    def _begins(self, now: Structure, held: Structure) -> bool:
        shows, before = _shows(now), held if _shows(held) else self._shown
        if not shows:
            self._shown = before
            return False
        steady = self._steady
        self._steady = before is None or _likeness(now, before) >= self._alike
        return steady and not self._steady


def _shows(details: Structure) -> bool:
    return product(details, details) >= least_energy(len(details))


def _likeness(one: Structure, other: Structure) -> float:
    """Correlation of two structures that show something."""
    energies = float(product(one, one)), float(product(other, other))
    return float(product(one, other)) / math.sqrt(energies[0] * energies[1])
