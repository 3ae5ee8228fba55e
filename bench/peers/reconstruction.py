"""Peers that track the reader's picture, and send the cells with the largest error."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import CELL, Footage, Map, Plane
from foveate.bench.peers.cells import highest
from foveate.bench.peers.sent import Sent, of_mask
from foveate.bench.reader.painting import ReaderPicture, Tokens, level_enlarged, lods_at

_SCALES: Final = 4  # of gazing: LODs 0 to 3


def replenishment(footage: Footage, budget: int) -> Iterator[Sent]:
    """Conditional replenishment (Mounts, 1969): the K cells with the largest error of the reader's picture.

    Wrong is the squared error of all samples of Y, Cb and Cr; a cell without error is not sent.
    """
    reader = ReaderPicture(footage.shapes)
    for picture in footage.pictures:
        errors = cell_errors(reader.planes, picture.planes)
        sent = of_mask(picture.planes, highest(errors, budget) & (errors > 0))
        reader.paint(sent.planes, lods_at(sent.tokens, footage.grid))
        yield sent


def gazing(footage: Footage, budget: int) -> Iterator[Sent]:
    """As AutoGaze (arXiv 2603.12254) is trained to choose: patches of four scales, one by one, by reconstruction.

    Greedy: each next patch is the one after which the reader's picture has the least squared error. Its network is not
    there; the errors it learns to guess are computed. Patches of all scales may overlap, the later is seen. Its fixed
    frames of 224 pixels become LODs 0 to 3, its stop at an error becomes the budget.
    """
    reader = ReaderPicture(footage.shapes)
    for picture in footage.pictures:
        held = cell_errors(reader.planes, picture.planes)
        left = [cell_errors(_at_level(picture.planes, lod), picture.planes) for lod in range(_SCALES)]
        tokens = greedy(held, left, budget)
        reader.paint(picture.planes, lods_at(tokens, footage.grid))
        yield Sent(picture.planes, tokens)


def greedy(held: Map, left: Sequence[Map], budget: int) -> Tokens:
    """Up to ``budget`` tokens, in the order in which they are chosen; each with a gain.

    ``held``: each cell's error as the reader's picture is; ``left``: what a token of each LOD leaves in it.
    """
    side = 1 << (len(left) - 1)
    held, *left = (_padded(errors, side) for errors in (held, *left))
    gains = [_sums(held - errors, 1 << lod) for lod, errors in enumerate(left)]
    tokens: list[tuple[int, int, int]] = []
    while len(tokens) < budget:
        best = [int(gain.argmax()) for gain in gains]
        lod = max(range(len(gains)), key=lambda lod: gains[lod].flat[best[lod]])
        if gains[lod].flat[best[lod]] <= 0:
            break
        row, column = (int(place) << lod for place in divmod(best[lod], gains[lod].shape[1]))
        tokens.append((row, column, lod))
        cells = np.s_[row : row + (1 << lod), column : column + (1 << lod)]
        held[cells] = left[lod][cells]
        top, start = row // side * side, column // side * side
        node = np.s_[top : top + side, start : start + side]
        for scale, gain in enumerate(gains):
            reach = np.s_[top >> scale : (top + side) >> scale, start >> scale : (start + side) >> scale]
            gain[reach] = _sums(held[node] - left[scale][node], 1 << scale)
    return np.array(tokens, np.int32).reshape(-1, 3)


def cell_errors(shown: Sequence[Plane], true: Sequence[Plane]) -> Map:
    """Each cell's sum of squared differences over the samples of all planes: float64[rows, columns]."""
    rows, columns = (-(-length // CELL) for length in true[0].shape)
    total: NDArray[np.float64] = np.zeros((rows, columns))
    for one, other in zip(shown, true, strict=True):
        side = CELL if other.shape == true[0].shape else CELL // 2
        square = (one.astype(np.float32) - other) ** 2
        wide = ((0, rows * side - square.shape[0]), (0, columns * side - square.shape[1]))
        total += _sums(np.pad(square, wide), side)
    return total


def _at_level(planes: Sequence[Plane], lod: int) -> list[Plane]:
    return [level_enlarged(plane, lod - (plane.shape != planes[0].shape)) for plane in planes]


def _sums(values: NDArray[np.floating], side: int) -> Map:
    rows, columns = values.shape
    return values.reshape(rows // side, side, columns // side, side).sum(axis=(1, 3), dtype=np.float64)


def _padded(errors: Map, side: int) -> Map:
    """Whole nodes; what lies outside the picture has no error."""
    return np.pad(errors, ((0, -errors.shape[0] % side), (0, -errors.shape[1] % side)))
