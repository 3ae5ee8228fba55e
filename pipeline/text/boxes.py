"""From a text probability map to boxes around lines of text, and to the cells that they touch."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import cv2
import numpy as np

from foveate.pipeline.geometry import Map, as_blocks

LIKELY: Final = 0.3
"""Probability above which a sample belongs to a line of text."""
SURE: Final = 0.5
"""Least mean probability of the samples of a line."""
THINNEST: Final = 3.0  # samples: thinner boxes are discarded as scratches
GROWTH: Final = 1.5
"""Growth of a box on each side, in units of area / perimeter: the model marks the middle of a line, not its edges
(Liao et al. 2020, Real-time Scene Text Detection with Differentiable Binarization: D' = A' r' / L', r' = 1.5)."""

_FINE: Final = 4  # samples along the side of a cell where boxes are drawn


class Box(NamedTuple):
    """A line of text, at any angle."""

    corners: Map  # float32[4, 2]: x and y in pixels of the picture, in turn around the box
    confidence: float  # in [0, 1]


def boxes_in(probability: Map, height: int, width: int) -> list[Box]:
    """The lines in ``probability``, float32[h, w] in [0, 1], which spans a picture of ``height`` x ``width`` pixels."""
    _, labels, extents, _ = cv2.connectedComponentsWithStats((probability > LIKELY).astype(np.uint8))
    counts = np.bincount(labels.ravel(), minlength=len(extents))
    means = np.bincount(labels.ravel(), probability.ravel(), len(extents)) / np.maximum(counts, 1)
    scale = np.array([width / probability.shape[1], height / probability.shape[0]], np.float32)
    found = []
    for label in np.flatnonzero(means[1:] >= SURE) + 1:  # 0 is the background
        left, top, across, down = extents[label][:4]
        row, column = np.nonzero(labels[top : top + down, left : left + across] == label)
        corners = _around(np.stack([column + left, row + top], axis=1).astype(np.float32))
        if corners is not None:
            pixels = np.asarray((corners + np.float32(0.5)) * scale, np.float32)
            found.append(Box(pixels, float(means[label])))
    return found


def _around(samples: Map) -> Map | None:
    """Corners of the grown box around float32[n, 2]; None if it is too thin."""
    centre, sides, angle = cv2.minAreaRect(samples)
    across, down = (side + 1 for side in sides)  # from sample centres to sample edges
    if min(across, down) < THINNEST:
        return None
    rim = GROWTH * across * down / (2 * (across + down))
    return np.asarray(cv2.boxPoints((centre, (across + 2 * rim, down + 2 * rim), angle)), np.float32)


def at_cells(boxes: Sequence[Box], rows: int, columns: int, cell: int) -> Map:
    """The highest confidence of the boxes that touch each cell of ``cell`` pixels, else 0: float32[rows, columns]."""
    drawn = np.zeros((rows * _FINE, columns * _FINE), np.float32)
    for box in sorted(boxes, key=lambda box: box.confidence):  # the highest is drawn last
        samples = np.floor(box.corners * np.float32(_FINE / cell)).astype(np.int32)
        cv2.fillPoly(drawn, [samples], box.confidence)
    return as_blocks(drawn, _FINE).max(axis=(1, 3))
