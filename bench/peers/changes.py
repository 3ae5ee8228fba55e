"""Peers that keep cells that differ from a neighbouring frame. Each returns one bool[rows, columns] per frame.

All show a first frame whole, which counts: the total is T * K tokens for T frames, or more if the whole frames alone
need it. The changes are mean absolute R'G'B' differences of cells.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Footage, Map, cell_changes
from foveate.bench.peers.cells import Mask, highest, reaching

_TUBELET: Final = 2  # frames
_CLIP: Final = 16  # frames, of RLT


def evs(footage: Footage, budget: int) -> list[Mask]:
    """Efficient Video Sampling (arXiv 2510.14624): the T * K most changed cells of the whole clip, first frame whole.

    A cell is compared with itself one frame earlier. The whole clip has to be there first.
    """
    first = np.full((1, *footage.grid), np.inf)
    changes = np.concatenate([first, *(change[None] for change in cell_changes(footage.pictures))])
    kept = highest(changes, max(first.size, budget * len(changes)))
    return list(kept)


def evs_causal(footage: Footage, budget: int) -> list[Mask]:
    """EVS for a stream: as many of the most changed cells in each frame, first frame whole, T * K in all."""
    frames, cells = len(footage.pictures), footage.grid[0] * footage.grid[1]
    later = max(budget * frames - cells, 0) // max(frames - 1, 1)
    return [np.ones(footage.grid, np.bool_), *(highest(change, later) for change in cell_changes(footage.pictures))]


def dtd(footage: Footage, budget: int) -> list[Mask]:
    """Differential Token Drop (TimeChat-Online, 2025), pixels: tubelets of 2 frames that changed by at least t.

    Compared are the front of the tubelet before and the back of this one; t is one number for the clip, such that the
    total is kept. The first tubelet is whole. A last frame without a partner has none.
    """
    return _tubelets(footage, budget, len(footage.pictures))


def rlt(footage: Footage, budget: int) -> list[Mask]:
    """Run-Length Tokenization (NeurIPS 2024): DTD's rule in clips of 16 frames, the first tubelet of each whole."""
    return _tubelets(footage, budget, _CLIP)


def _tubelets(footage: Footage, budget: int, clip: int) -> list[Mask]:
    """A tubelet shows both its frames, and so counts as the two patches that it holds."""
    changes = tubelet_changes(footage, clip)
    whole = np.isinf(changes)
    kept = budget * len(footage.pictures) // _TUBELET - int(whole.sum())
    chosen = whole.copy()
    chosen[~whole] = reaching(changes[~whole], kept)
    frames = list(chosen.repeat(_TUBELET, axis=0))
    return frames + [np.zeros(footage.grid, np.bool_)] * (len(footage.pictures) % _TUBELET)


def tubelet_changes(footage: Footage, clip: int) -> Map:
    """float64[tubelets, rows, columns]: front of the tubelet before against the back of this one; inf where none is.

    ``clip`` is after how many frames there is none before.
    """
    count = len(footage.pictures) // _TUBELET
    changes: NDArray[np.float64] = np.full((count, *footage.grid), np.inf)
    reach = 2 * _TUBELET - 1
    for place, change in enumerate(list(cell_changes(footage.pictures, gap=reach))[::_TUBELET], 1):
        if place * _TUBELET % clip:
            changes[place] = change
    return changes
