"""Shared by the peers: choosing cells by a value, and features of cells."""

import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import CELL, Map, Picture

Mask = NDArray[np.bool_]


def highest(values: NDArray[np.floating], count: int) -> Mask:
    """The ``count`` highest values of an array of any shape; of equal ones the first."""
    mask = np.zeros(values.size, np.bool_)
    mask[np.argsort(-values.ravel(), kind="stable")[: max(count, 0)]] = True
    return mask.reshape(values.shape)


def reaching(changes: NDArray[np.floating], count: int) -> Mask:
    """Where ``changes`` reach the lowest threshold that at most ``count`` of them reach."""
    ordered = np.sort(changes, axis=None)[::-1]
    if count >= len(ordered):
        return np.ones(changes.shape, np.bool_)
    return np.asarray(changes > ordered[max(count, 0)], np.bool_)  # the first that must not reach it


def cell_features(picture: Picture) -> Map:
    """Each cell's mean R'G'B' of its 4x4 parts, in [0, 255]: float64[rows, columns, 48]. The edge is repeated."""
    rows, columns = picture.grid
    bottom, right = rows * CELL - picture.rgb.shape[0], columns * CELL - picture.rgb.shape[1]
    padded = np.pad(picture.rgb, ((0, bottom), (0, right), (0, 0)), mode="edge")
    parts = padded.reshape(rows, 4, 4, columns, 4, 4, 3).mean(axis=(2, 5))
    return parts.transpose(0, 2, 1, 3, 4).reshape(rows, columns, 48)
