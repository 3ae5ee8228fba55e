"""The reader's picture, painted from tokens and the planes that they were sampled from.

Written without the pipeline's own reader, so that the quality measure checks it.
"""

from collections.abc import Sequence
from typing import Final

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import CELL, Plane
from foveate.pipeline.selection import Selection
from foveate.pipeline.selection.painting import Interpolation

Lods = NDArray[np.int8]  # [rows, columns]: the LOD at which each cell is shown; NOT_SHOWN without a token
Tokens = NDArray[np.int32]  # [tokens, 3]: row and column of the top left cell, LOD; painted in this order

NOT_SHOWN: Final = -1
_PADDED = 32  # the levels are those of a picture padded to a multiple of this at least, by its edge
_METHODS: Final = {"bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
_UNSEEN = 128  # grey, before the first token
_MOST = 60.0  # dB; one frame that is shown whole should not lift the mean of the others


def tokens_of(selection: Selection) -> Tokens:
    """Where the tokens of a selection are painted."""
    reach = CELL << selection.lod.astype(np.int32)  # pixels
    top, left = ((centre - reach // 2) // CELL for centre in (selection.y, selection.x))
    return np.stack([top, left, selection.lod], axis=1).astype(np.int32)


def lods_at(tokens: Tokens, grid: tuple[int, int]) -> Lods:
    """The LOD of the last token over each cell of a grid of so many rows and columns."""
    lods = np.full(grid, NOT_SHOWN, np.int8)
    for top, left, lod in tokens.tolist():
        lods[top : top + (1 << lod), left : left + (1 << lod)] = lod
    return lods


def lods_of(selection: Selection) -> Lods:
    """The LOD of the token over each cell of the picture."""
    return lods_at(tokens_of(selection), (-(-selection.height // CELL), -(-selection.width // CELL)))


class ReaderPicture:
    """A picture that shows the newest token of each cell, enlarged."""

    def __init__(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Planes of these ``shapes``, all grey. The first is the luma's."""
        self.planes = [np.full(shape, _UNSEEN, np.uint8) for shape in shapes]

    def paint(self, planes: Sequence[Plane], lods: Lods, interpolation: Interpolation = "bilinear") -> None:
        """Show the cells that have a token, sampled from ``planes``."""
        method = _METHODS[interpolation]
        for lod in np.unique(lods[lods != NOT_SHOWN]).tolist():
            for known, plane in zip(self.planes, planes, strict=True):
                halved = plane.shape != planes[0].shape
                where = _pixels(lods == lod, known, halved)
                np.copyto(known, level_enlarged(plane, lod - halved, method), where=where)


def level_enlarged(plane: Plane, level: int, method: int = cv2.INTER_LINEAR) -> Plane:
    """``plane``, uint8[h, w], as its level shows it: 2x2 box means, enlarged as a whole, then cut.

    Level 0 and below is the plane itself.
    """
    if level <= 0:
        return plane
    height, width = plane.shape
    side = 1 << level
    whole = max(_PADDED, side)
    padded = np.pad(plane, ((0, -height % whole), (0, -width % whole)), mode="edge")
    rows, columns = (length >> level for length in padded.shape)
    means = padded.reshape(rows, side, columns, side).mean(axis=(1, 3), dtype=np.float32)
    large = cv2.resize(means, padded.shape[::-1], interpolation=method)
    return np.rint(large[:height, :width].clip(0, 255)).astype(np.uint8)


def downscaled(plane: Plane, height: int, width: int) -> Plane:
    """``plane`` resized to ``height`` x ``width`` by area, and enlarged again bilinearly."""
    small = cv2.resize(plane, (width, height), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, plane.shape[::-1], interpolation=cv2.INTER_LINEAR), np.uint8)


def rgb_of(planes: Sequence[Plane]) -> Plane:
    """Y, Cb and Cr as R'G'B', uint8[H, W, 3], as libswscale converts them."""
    height, width = planes[0].shape
    frame = av.VideoFrame(width + width % 2, height + height % 2, "yuv420p")
    for plane, values in zip(frame.planes, planes, strict=True):
        rows = np.zeros((plane.height, plane.line_size), np.uint8)
        down, across = plane.height - values.shape[0], plane.line_size - values.shape[1]
        rows[:] = np.pad(values, ((0, down), (0, across)), mode="edge")
        plane.update(rows.tobytes())
    return np.asarray(frame.to_ndarray(format="rgb24")[:height, :width], np.uint8)


def mean_square(shown: Plane, true: Plane) -> float:
    """Mean squared difference, in 8-bit units squared."""
    return float(np.mean((shown.astype(np.float32) - true) ** 2, dtype=np.float64))


def decibels(error: float) -> float:
    """PSNR of a mean squared error, at most 60."""
    return min(_MOST, float(10 * np.log10(255**2 / error))) if error > 0 else _MOST


def _pixels(cells: NDArray[np.bool_], plane: Plane, halved: bool) -> NDArray[np.bool_]:
    """bool[h, w]: the samples of ``plane`` in ``cells``."""
    side = CELL // 2 if halved else CELL
    return cells.repeat(side, axis=0).repeat(side, axis=1)[: plane.shape[0], : plane.shape[1]]
