"""Selections as one padded batch of patches, positions and a validity mask."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.vlm.places import Places

PLACE = 5
"""Numbers of one place in a batch: row, column and extent in cells, and the rows and columns of its picture's grid."""


class Batch(NamedTuple):
    """B Selections, padded to N tokens each."""

    patches: NDArray[np.uint8]  # [B, N, PATCH*PATCH*3]: rows of R'G'B' pixels; zeros where not valid
    places: NDArray[np.float32]  # [B, N, PLACE]; where not valid, the first cell of the grid
    valid: NDArray[np.bool_]  # [B, N]


def batch_of(selections: Sequence[Selection], length: int | None = None) -> Batch:
    """The tokens of ``selections``, padded to ``length`` (default: the most that one of them has, at least 1).

    Raises ValueError for no selections, one without patches, or one with more than ``length`` tokens.
    """
    if not selections:
        raise ValueError("a batch needs at least one selection")
    length = max(1, *map(len, selections)) if length is None else length
    naflex = [selection.naflex(length) for selection in selections]
    places = np.zeros((len(selections), length, PLACE), np.float32)
    for selection, to in zip(selections, places, strict=True):
        to[:, 2:] = 1, *selection.grid
        at = Places.of(selection)
        to[: len(at), :3] = np.stack([at.rows, at.columns, at.extent], 1)
    patches = np.stack([view.patches for view in naflex]).reshape(len(selections), length, PATCH * PATCH * 3)
    return Batch(patches, places, np.stack([view.valid for view in naflex]))
