"""Change detection: which tiles of a frame differ from the reference frame."""

from functools import lru_cache

import numpy as np

from foveate.pipeline.frames import FrameView, Plane
from foveate.pipeline.geometry import TILE, Geometry, Mask
from foveate.pipeline.native import change
from foveate.pipeline.spec.change import BLOCK, NO_COLOUR

Planes = tuple[Plane, Plane, Plane]


def planes_of(frame: FrameView) -> Planes:
    """Luma, Cb and Cr; for grey frames the chroma is 128 everywhere, at half resolution."""
    if frame.chroma is not None:
        return frame.luma, *frame.chroma
    grey = _grey(-(-frame.height // 2), -(-frame.width // 2))
    return frame.luma, grey, grey


@lru_cache(maxsize=4)
def _grey(rows: int, columns: int) -> Plane:
    plane = np.full((rows, columns), NO_COLOUR, np.uint8)
    plane.flags.writeable = False
    return plane


def changed_tiles(planes: Planes, reference: Planes, threshold: float, geometry: Geometry) -> Mask:
    """bool[tiles]: the mean absolute difference of any 8x8 block, in any plane, exceeds ``threshold``.

    All planes are uint8; chroma blocks cover the same 8x8 pixels of level 0.
    """
    sides = [_per_plane(BLOCK, plane, planes[0]) for plane in planes]
    return change.changed_tiles(planes, reference, sides, threshold, geometry.tiles)


def _per_plane(side: int, plane: Plane, luma: Plane) -> int:
    """``side`` level-0 pixels in samples of ``plane``, which has the luma's resolution or half of it."""
    return side if plane.shape == luma.shape else side // 2


class ReferenceFrame:
    """The picture as last written, tile by tile: the planes that new frames are compared with."""

    def __init__(self) -> None:
        self._planes: Planes | None = None
        self._own = False  # False: the planes belong to a frame and are copied before they are written

    def planes(self) -> Planes:
        """The planes as they are now. Valid until the next write."""
        if self._planes is None:
            raise RuntimeError("there is no reference frame before the first write")
        return self._planes

    def write(self, planes: Planes, tiles: Mask) -> None:
        """Copy ``tiles`` of ``planes`` into the reference frame."""
        if tiles.all():
            self._planes, self._own = planes, False
            return
        if not self._own:
            luma, cb, cr = (np.array(plane) for plane in self.planes())
            self._planes, self._own = (luma, cb, cr), True
        for target, source in zip(self.planes(), planes, strict=True):
            change.copy_tiles(source, target, _per_plane(TILE, target, planes[0]), tiles)
