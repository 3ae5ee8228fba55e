"""Selections made by hand, and of pictures, for tests of what is handed to models."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import Selection


def selection_of(width: int, height: int, tokens: Sequence[tuple[int, int, int]], patches: bool = True) -> Selection:
    """A Selection of ``tokens``, (LOD, x, y) each, with random patches."""
    lod, x, y = np.array(tokens, np.int32).reshape(-1, 3).T
    count = len(lod)
    scores = np.zeros(count, np.float32)
    pixels = np.random.default_rng(count).integers(0, 256, (count, 16, 16, 3), np.uint8) if patches else None
    return Selection(
        0, 0.0, width, height, "first", 1.0, 1.0, x, y, lod.astype(np.uint8), scores, scores, scores, None,
        np.zeros(count, np.int32), np.ones(count, np.bool_), pixels,
    )  # fmt: skip


def reduced(picture: NDArray[np.uint8], lod: int) -> NDArray[np.float64]:
    """The picture [H, W, 3] by box means of 2^lod x 2^lod pixels."""
    side = 1 << lod
    height, width, _ = picture.shape
    return picture.reshape(height // side, side, width // side, side, 3).mean(axis=(1, 3))
