"""Reference texture, computed only from the rule in docs/architecture.md (step 2 of a frame's way).

Tokens show the texture, not the frame. Written without the pipeline's own change detection, so that the quality measure
checks it.
"""

import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Picture, Plane
from foveate.pipeline.selection import KeyframeReason

_TILE, _BLOCK = 32, 8  # pixels
_MOST = 8.0  # grey values up to which noise raises the threshold
_STEP = 8  # of a block's sum of differences, to which noise is rounded down
_PER_TILE = _TILE // _BLOCK


class Texture:
    """The planes of the frames so far: a tile is rewritten where it differs, and everywhere on a keyframe."""

    def __init__(self, threshold: float, noise: float = 0.0) -> None:
        """``threshold``: the mean absolute difference of an 8x8 block, in 8-bit units, above which a tile differs.

        At least ``noise`` times the quietest quarter's difference from frame to frame, as of the frame before.
        """
        self._least, self._factor = threshold, noise
        self._threshold = threshold
        self._before: Plane | None = None
        self._planes: list[Plane] = []

    def show(self, picture: Picture, keyframe: KeyframeReason | None) -> tuple[Plane, ...]:
        """Y, Cb and Cr after ``picture`` was written. Valid until the next one."""
        self._write(picture, keyframe)
        noise = 0.0 if keyframe not in (None, "periodic") else self._noise(picture.luma)
        self._threshold = max(self._least, min(self._factor * noise, _MOST))
        self._before = picture.luma
        return tuple(self._planes)

    def _noise(self, luma: Plane) -> float:
        """Lower quartile of the mean differences of each tile's first block; none where most have one sign."""
        if self._before is None:
            return 0.0
        height, width = (side - side % _BLOCK for side in luma.shape)
        change = luma.astype(np.int32)[:height, :width] - self._before[:height, :width]
        blocks = change.reshape(height // _BLOCK, _BLOCK, -1, _BLOCK)[::_PER_TILE, :, ::_PER_TILE]
        apart, sums = np.abs(blocks).sum(axis=(1, 3)), np.abs(blocks.sum(axis=(1, 3)))
        quiet = np.sort(np.where(2 * sums > apart, 0, apart), axis=None)
        return float(quiet[-(-quiet.size // 4) - 1] // _STEP * _STEP / _BLOCK**2) if quiet.size else 0.0

    def _write(self, picture: Picture, keyframe: KeyframeReason | None) -> None:
        if keyframe or not self._planes:
            self._planes = [plane.copy() for plane in picture.planes]
            return
        changed = self.changed(picture)
        for held, plane in zip(self._planes, picture.planes, strict=True):
            side = _TILE if plane.shape == picture.luma.shape else _TILE // 2
            pixels = changed.repeat(side, axis=0).repeat(side, axis=1)
            np.copyto(held, plane, where=pixels[: plane.shape[0], : plane.shape[1]])

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
