"""Which tiles of a frame differ from what the texture holds now."""

from __future__ import annotations

import cv2
import numpy as np

from foveate.pipeline.cpu.blocks import block_means, blocks_over
from foveate.pipeline.cpu.scratch import Scratch
from foveate.pipeline.cpu.tile_mask import TileMask
from foveate.pipeline.frames import Frame, Plane
from foveate.pipeline.geometry import TILE, Geometry, Mask

BLOCK = 8  # level-0 pixels; the mean difference is taken over BLOCK x BLOCK
_NO_COLOUR = 128

Planes = tuple[Plane, Plane, Plane]


def planes_of(frame: Frame) -> Planes:
    """Luma, Cb and Cr; for grey frames the chroma is 128 everywhere, at half resolution."""
    if frame.chroma is not None:
        return frame.luma, *frame.chroma
    shape = -(-frame.height // 2), -(-frame.width // 2)
    grey = np.broadcast_to(np.uint8(_NO_COLOUR), shape)
    return frame.luma, grey, grey


def changed_tiles(planes: Planes, held: Planes, threshold: float, geometry: Geometry, scratch: Scratch) -> Mask:
    """bool[tiles]: the mean absolute difference of any 8x8 block, in any plane, exceeds ``threshold``.

    All planes are uint8; chroma blocks cover the same 8x8 pixels of level 0.
    """
    mask = np.zeros(geometry.tiles, np.bool_)
    for plane, other in zip(planes, held, strict=True):
        # A mean cannot exceed the threshold where no pixel does; one quick pass settles still frames.
        if cv2.norm(plane, other, cv2.NORM_INF) > threshold:
            side = _per_plane(BLOCK, plane, planes[0])
            difference = scratch.array("difference", plane.shape, np.uint8)
            cv2.absdiff(plane, other, dst=difference)
            _add_tiles(mask, _whole_blocks(difference, side), side, threshold, scratch)
    return mask


def _per_plane(side: int, plane: Plane, luma: Plane) -> int:
    """``side`` level-0 pixels in samples of ``plane``, which has the luma's resolution or half of it."""
    return side if plane.shape == luma.shape else side // 2


def _whole_blocks(difference: Plane, side: int) -> Plane:
    """The plane with its edge repeated to whole blocks."""
    height, width = difference.shape
    bottom, right = -height % side, -width % side
    if not bottom and not right:
        return difference
    return np.asarray(cv2.copyMakeBorder(difference, 0, bottom, 0, right, cv2.BORDER_REPLICATE), np.uint8)


def _add_tiles(mask: Mask, difference: Plane, side: int, threshold: float, scratch: Scratch) -> None:
    """Set the tiles of ``mask`` in which the mean of any block exceeds ``threshold``."""
    sure, possible = blocks_over(difference, side, threshold, scratch)
    rows, columns = sure.shape
    mask |= _tiles_with(sure, mask)
    per_tile = TILE // BLOCK
    possible &= ~mask.repeat(per_tile, 0).repeat(per_tile, 1)[:rows, :columns]
    row, column = np.nonzero(possible)
    if len(row):
        over = block_means(difference, side, row, column) > threshold
        mask[row[over] // per_tile, column[over] // per_tile] = True


def _tiles_with(blocks: Mask, like: Mask) -> Mask:
    """bool[blocks] -> bool[tiles]: any of a tile's blocks."""
    rows, columns = like.shape
    per_tile = TILE // BLOCK
    padded = np.zeros((rows * per_tile, columns * per_tile), np.bool_)
    padded[: blocks.shape[0], : blocks.shape[1]] = blocks
    # Four blocks of a row are read as one 32-bit number: non-zero where any of them is set.
    row_any = padded.view(np.uint32) != 0
    return np.asarray(row_any.reshape(rows, per_tile, columns).any(axis=1), np.bool_)


class Held:
    """Upload's copy of what the texture holds: the same tiles are written to both, in the same order."""

    def __init__(self) -> None:
        self._planes: Planes | None = None
        self._own = False  # False: the planes are a frame's, to be copied before the first write

    def planes(self) -> Planes:
        """The planes as they are now. Valid until the next write."""
        if self._planes is None:
            raise RuntimeError("nothing is held before the first write")
        return self._planes

    def write(self, planes: Planes, tiles: TileMask) -> None:
        """Take over ``tiles`` of ``planes``."""
        if tiles.all:
            self._planes, self._own = planes, False
            return
        if not self._own:
            luma, cb, cr = (np.array(plane) for plane in self.planes())
            self._planes, self._own = (luma, cb, cr), True
        for target, source in zip(self.planes(), planes, strict=True):
            tiles.copy(source, target, _per_plane(TILE, target, planes[0]))
