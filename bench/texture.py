"""What the texture holds, worked out from DESIGN section 3 alone: tokens show the texture, not the frame.

Written without the pipeline's own change detection, so that the quality measure checks it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from foveate.bench.footage import Picture, Plane

_TILE, _BLOCK = 32, 8  # pixels
_PER_TILE = _TILE // _BLOCK


class Texture:
    """The planes of the frames so far: a tile is rewritten where it differs, and everywhere on a keyframe."""

    def __init__(self, threshold: float) -> None:
        """``threshold``: the mean absolute difference of an 8x8 block, in 8-bit units, above which a tile differs."""
        self._threshold = threshold
        self._planes: list[Plane] = []

    def show(self, picture: Picture, keyframe: bool) -> tuple[Plane, ...]:
        """Y, Cb and Cr after ``picture`` was written. Valid until the next one."""
        if keyframe or not self._planes:
            self._planes = [plane.copy() for plane in picture.planes]
            return tuple(self._planes)
        changed = self.changed(picture)
        for held, plane in zip(self._planes, picture.planes, strict=True):
            side = _TILE if plane.shape == picture.luma.shape else _TILE // 2
            pixels = changed.repeat(side, axis=0).repeat(side, axis=1)
            np.copyto(held, plane, where=pixels[: plane.shape[0], : plane.shape[1]])
        return tuple(self._planes)

    def changed(self, picture: Picture) -> NDArray[np.bool_]:
        """bool[tiles]: tiles of which a block, in any plane, differs by more than the threshold."""
        height, width = picture.luma.shape
        worst = np.zeros((-(-height // _TILE) * _PER_TILE, -(-width // _TILE) * _PER_TILE))
        for held, plane in zip(self._planes, picture.planes, strict=True):
            side = _BLOCK if plane.shape == picture.luma.shape else _BLOCK // 2
            means = block_means(np.abs(plane.astype(np.int16) - held), side)
            part = worst[: means.shape[0], : means.shape[1]]
            np.maximum(part, means, out=part)
        tiles = (worst > self._threshold).reshape(-1, _PER_TILE, worst.shape[1] // _PER_TILE, _PER_TILE)
        return np.asarray(tiles.any(axis=(1, 3)), np.bool_)


def block_means(values: NDArray[np.int16], side: int) -> NDArray[np.float64]:
    """Mean of each ``side`` x ``side`` block; the edge is repeated."""
    height, width = values.shape
    padded = np.pad(values, ((0, -height % side), (0, -width % side)), mode="edge")
    rows, columns = padded.shape[0] // side, padded.shape[1] // side
    return padded.reshape(rows, side, columns, side).mean(axis=(1, 3))
