"""What a reader of tokens sees: their patches, enlarged and put together to a picture."""

from __future__ import annotations

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
        if level == 0:
            for place, patch in zip(places[0], patches[at], strict=True):
                _put(picture, place, 0, patch)
        else:
            _enlarge(_samples(mosaic, level, places[level], patches[at]), places[level], level, interpolation, picture)
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


def _samples(mosaic: Image, level: int, places: list[_Place], patches: NDArray[np.uint8]) -> Image:
    """All samples of a level: means of the mosaic over their areas, and the tokens' own, in whole tokens."""
    height, width = mosaic.shape[:2]
    factor, side = 1 << level, PATCH << level
    padded = cv2.copyMakeBorder(mosaic, 0, -height % factor, 0, -width % factor, _EDGE)
    rows, columns = padded.shape[0] >> level, padded.shape[1] >> level
    small = cv2.resize(padded, (columns, rows), interpolation=cv2.INTER_AREA)
    whole = -(-height // side) * PATCH, -(-width // side) * PATCH
    samples = np.asarray(cv2.copyMakeBorder(small, 0, whole[0] - rows, 0, whole[1] - columns, _EDGE), np.uint8)
    for (top, left), patch in zip(places, patches, strict=True):
        if top < whole[0] and left < whole[1]:
            samples[top : top + PATCH, left : left + PATCH] = patch
    return samples


def _enlarge(samples: Image, places: list[_Place], level: int, interpolation: Interpolation, picture: Image) -> None:
    """Paint what the tokens of one level show inside ``picture``, each enlarged with a rim of the samples around it."""
    factor, rim = 1 << level, _RIMS[interpolation]
    rimmed = cv2.copyMakeBorder(samples, rim, rim, rim, rim, _EDGE)
    for top, left in places:
        region = picture[top * factor : (top + PATCH) * factor, left * factor : (left + PATCH) * factor]
        if region.size:
            rows, columns = (-(-side // factor) + 2 * rim for side in region.shape[:2])
            block = rimmed[top : top + rows, left : left + columns]
            large = cv2.resize(block, (columns * factor, rows * factor), interpolation=_METHODS[interpolation])
            region[:] = large[rim * factor :, rim * factor :][: region.shape[0], : region.shape[1]]
