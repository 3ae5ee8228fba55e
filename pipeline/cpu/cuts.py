"""Scene cuts: frames whose structure does not resemble that of the frame before."""

import math

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.frames import Plane
from foveate.pipeline.geometry import CELL, TILE, Mask
from foveate.pipeline.native.cuts import CellSums, Products, cell_sums, displaced, in_place
from foveate.pipeline.settings import ChangeSettings
from foveate.pipeline.spec.cuts import CUT_DISPLACED, CUT_PLAIN, CUT_REACH

PLAIN_ENERGY = (TILE // CELL) ** 4 * (CUT_PLAIN * CELL * CELL) ** 2
"""Sum of the squares of the details of 2x2 cells, from which on they show anything.

It is four times the sum of the squares of what the cells' sums exceed their mean by.
"""


def least_energy(tiles: int) -> float:
    """Sum of the squares of a structure of ``tiles`` tiles, from which on it shows anything."""
    return max(1.0, tiles * PLAIN_ENERGY)


def least_likeness(settings: ChangeSettings) -> float:
    """Correlation of the structures of two frames from which on they show the same."""
    return 1 - 2 * settings.cut_structure if settings.cut_structure < 1 else -math.inf


def least_likeness_displaced(settings: ChangeSettings) -> float:
    """The same where one of them is displaced."""
    return max(least_likeness(settings), CUT_DISPLACED)


class SceneCuts:
    """Finds the cuts of a stream of frames of one size.

    A frame in which most tiles changed is compared with the frame before; where that shows nothing (black, or a flash),
    with the last one that does. It is a cut where the two do not resemble each other, neither as they are nor with one
    of them displaced, as by a fast pan, unless they did not a frame before: what changes for several frames, such as a
    whip pan, is one cut at most. A frame that shows nothing is no cut.
    """

    def __init__(self, settings: ChangeSettings) -> None:
        self._share = settings.cut_share
        self._alike = least_likeness(settings)
        self._alike_displaced = least_likeness_displaced(settings)
        self.reset()

    def reset(self) -> None:
        """Begin with a new stream."""
        self._steady = True  # the frame before resembled the one before it, as they were
        self._shown: CellSums | None = None  # of the last frame that shows anything, where the one before does not

    def is_cut(self, luma: Plane, before: Plane, changed: Mask) -> bool:
        """Whether a frame is a cut. ``before`` is the frame before, uint8[H, W] both; ``changed``: what differs."""
        if changed.sum() < self._share * changed.size:
            self._steady = True
            return False
        return self._begins(cell_sums(luma), cell_sums(before))

    def _begins(self, now: CellSums, held: CellSums) -> bool:
        products, plain = in_place(now, held), least_energy(now.size // (TILE // CELL) ** 2)
        before = held if products.other >= plain else self._shown
        if products.one < plain:
            self._shown = before
            return False
        steady, self._steady = self._steady, True
        if before is None:
            return False
        if before is not held:
            products = in_place(now, before)
        self._steady = _likeness(products) >= self._alike
        return steady and not self._steady and not self._moved(now, before)

    def _moved(self, now: CellSums, before: CellSums) -> bool:
        """Whether a frame shows the same as another one, displaced by whole cells: across, down, or both."""
        down, right = _displacement(now, before, 0), _displacement(now, before, 1)
        places = (down, right), (0, right), (down, 0)
        return any(_likeness_at(now, before, *place) >= self._alike_displaced for place in places)


def _likeness(products: Products) -> float:
    """Correlation of two structures that show something."""
    return products.both / math.sqrt(float(products.one) * float(products.other))


def _likeness_at(now: CellSums, before: CellSums, down: int, right: int) -> float:
    """Correlation of the structures where both pictures show something, 0 where they do not."""
    products = displaced(now, before, down, right)
    rows, columns = now.shape
    plain = (rows - 1 - abs(down)) * (columns - 1 - abs(right)) * PLAIN_ENERGY
    return _likeness(products) if min(products.one, products.other) >= plain else 0.0


def _displacement(now: CellSums, before: CellSums, axis: int) -> int:
    """Cells by which a picture moved along an axis: where the steps of its profile correlate best with the other's.

    A profile is the sums over the rows, or columns, of cells. Of several displacements the least one counts.
    """
    one, other = (np.diff(sums.sum(axis=1 - axis, dtype=np.int64)) for sums in (now, before))
    reach = now.shape[axis] // CUT_REACH
    by = np.arange(-reach, reach + 1)
    both = np.correlate(one, other, "full")[len(one) - 1 + by].astype(np.float64)
    energies = _energies(one, by) * _energies(other, -by)
    likeness = np.divide(both, np.sqrt(energies), out=np.zeros_like(both), where=energies > 0)
    return int(by[likeness.argmax()])


def _energies(steps: NDArray[np.int64], by: NDArray[np.int64]) -> NDArray[np.float64]:
    """By displacement, the sum of the squares of those of a profile's steps that overlap the other's."""
    ends = np.concatenate(([0], np.cumsum(steps * steps)))
    return (ends[len(steps) + np.minimum(by, 0)] - ends[np.maximum(by, 0)]).astype(np.float64)
