"""What a reader of tokens sees: their patches, enlarged and put together to a picture."""

from typing import Final, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH

Image = NDArray[np.uint8]  # [height, width, 3], R'G'B'
Interpolation = Literal["bilinear", "bicubic"]

UNSEEN: Final = 128  # grey, where no token ever was
_METHODS: Final = {"bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
_RIMS: Final = {"bilinear": 1, "bicubic": 2}  # samples beyond a token that its enlargement reads
_EDGE: Final = cv2.BORDER_REPLICATE


class _Place(NamedTuple):
    """Where a token lies: its upper left corner, in samples of its level."""

    top: int
    left: int


def blank(width: int, height: int) -> Image:
    """The picture of a reader who has seen nothing: grey, uint8[height, width, 3]."""
    return np.full((height, width, 3), UNSEEN, np.uint8)


def paint_patches(
    onto: Image,
    patches: NDArray[np.uint8],
    x: NDArray[np.integer],
    y: NDArray[np.integer],
    lod: NDArray[np.integer],
    interpolation: Interpolation = "bilinear",
) -> Image:
    """A copy of ``onto``, uint8[H, W, 3], with K tokens painted over it, the finest on top.

    ``patches`` are uint8[K, 16, 16, 3]; (``x``, ``y``) is any pixel of each token's square, such as its centre, in
    pixels of ``onto``; a token of LOD l covers the square of 16 * 2**l pixels that it lies in. Sample centres are
    aligned; what lies beyond the picture is cut off.

    Interpolation across a token's border takes the samples beyond it from the tokens that lie there, of whichever LOD,
    or else from ``onto``: as means over the area of one sample. Raises ValueError for arrays of other shapes, and for
    another interpolation.
    """
    _check(onto, patches, (x, y, lod), interpolation)
    mosaic, picture = onto.copy(), onto.copy()
    levels = [(level, np.flatnonzero(lod == level)) for level in np.unique(lod)[::-1].tolist()]
    places = {level: _places(x[at], y[at], level) for level, at in levels}
    for level, at in levels:
        for place, patch in zip(places[level], patches[at], strict=True):
            _put(mosaic, place, level, patch)
    for level, at in levels:
        for place, patch in zip(places[level], patches[at], strict=True):
            if level == 0:
                _put(picture, place, 0, patch)
            else:
                _enlarge(mosaic, place, level, patch, interpolation, picture)
    return picture


def _check(
    onto: Image, patches: NDArray[np.uint8], places: tuple[NDArray[np.integer], ...], interpolation: str
) -> None:
    if interpolation not in _METHODS:
        raise ValueError(f"interpolation must be one of {', '.join(_METHODS)}, got {interpolation!r}")
    if onto.dtype != np.uint8 or onto.ndim != 3 or onto.shape[2] != 3:
        raise ValueError(f"the picture must be uint8[H, W, 3], got {onto.dtype}{list(onto.shape)}")
    if patches.dtype != np.uint8 or patches.shape[1:] != (PATCH, PATCH, 3):
        raise ValueError(f"patches must be uint8[K, {PATCH}, {PATCH}, 3], got {patches.dtype}{list(patches.shape)}")
    if any(each.shape != (len(patches),) for each in places):
        raise ValueError(f"x, y and lod must have one value for each of {len(patches)} patches")


def _places(x: NDArray[np.integer], y: NDArray[np.integer], level: int) -> list[_Place]:
    side = PATCH << level
    tops, lefts = (y.astype(np.int64) // side * PATCH).tolist(), (x.astype(np.int64) // side * PATCH).tolist()
    return [_Place(top, left) for top, left in zip(tops, lefts, strict=True)]


def _put(picture: Image, place: _Place, level: int, patch: NDArray[np.uint8]) -> None:
    """Paint a token in squares of one colour."""
    top, left = place.top << level, place.left << level
    region = picture[top : top + (PATCH << level), left : left + (PATCH << level)]
    if not region.size:
        return
    rows, columns = (-(-side // (1 << level)) for side in region.shape[:2])
    large = cv2.resize(patch[:rows, :columns], (columns << level, rows << level), interpolation=cv2.INTER_NEAREST)
    region[:] = large[: region.shape[0], : region.shape[1]]


def _enlarge(
    mosaic: Image, place: _Place, level: int, patch: NDArray[np.uint8], interpolation: Interpolation, picture: Image
) -> None:
    """Paint what a token shows inside ``picture``, enlarged with a rim of the samples around it."""
    factor, rim = 1 << level, _RIMS[interpolation]
    top, left, side = place.top * factor, place.left * factor, PATCH * factor
    region = picture[top : top + side, left : left + side]
    if not region.size:
        return
    rows, columns = (-(-side // factor) for side in region.shape[:2])
    block = _rimmed(mosaic, place, level, rim)
    block[rim : rim + PATCH, rim : rim + PATCH] = patch
    block = block[: rows + 2 * rim, : columns + 2 * rim]
    large = cv2.resize(block, None, fx=factor, fy=factor, interpolation=_METHODS[interpolation])
    region[:] = large[rim * factor :, rim * factor :][: region.shape[0], : region.shape[1]]


def _rimmed(mosaic: Image, place: _Place, level: int, rim: int) -> Image:
    """A token's samples and ``rim`` more on each side: means of the mosaic over their areas, its edge repeated."""
    factor = 1 << level
    ends = [-(-side // factor) for side in mosaic.shape[:2]]  # samples of the whole picture
    spans = []
    for start, end in zip(place, ends, strict=True):
        spans.append((max(start - rim, 0), min(start + PATCH + rim, end)))
    (top, bottom), (left, right) = spans
    area = mosaic[top * factor : bottom * factor, left * factor : right * factor]
    below, beside = (bottom - top) * factor - area.shape[0], (right - left) * factor - area.shape[1]
    if below or beside:
        area = np.asarray(cv2.copyMakeBorder(area, 0, below, 0, beside, _EDGE), np.uint8)
    small = cv2.resize(area, (right - left, bottom - top), interpolation=cv2.INTER_AREA)
    before = top - place.top + rim, left - place.left + rim
    after = place.top + PATCH + rim - bottom, place.left + PATCH + rim - right
    return np.asarray(cv2.copyMakeBorder(small, before[0], after[0], before[1], after[1], _EDGE), np.uint8)
