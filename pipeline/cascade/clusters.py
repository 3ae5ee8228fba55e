"""Superpixels of the Grid: SLIC (Achanta et al., 2012) on Lab + position, with a fixed number of iterations."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Map
from foveate.pipeline.spec.clusters import CLUSTERS, COMPACTNESS, ITERATIONS


class Clusters(NamedTuple):
    """float32[grid] maps; labels are whole numbers."""

    label: Map  # 0..49
    distance: Map  # to the cluster's centroid / half the diagonal
    size: Map  # cells in the cluster / cells in the Grid


def cluster(rgb: NDArray[np.uint8]) -> Clusters:
    """Clusters of the Grid's colours, uint8[rows, columns, 3]. Unlike SLIC, each cell looks at all centres."""
    shape = rgb.shape[:2]
    features, unit = _features(rgb)
    centres = features[seeds(shape)]
    for _ in range(ITERATIONS):
        label = _nearest(features, centres)
        centres = _means(features, label, centres)
    label = _nearest(features, centres)
    centres = _means(features, label, centres)
    away = (features[:, 3:] - centres[label, 3:]) * np.float32(1 / unit)
    distance = np.hypot(away[:, 0], away[:, 1]) / np.float32(np.hypot(*shape) / 2)
    size = np.bincount(label, minlength=len(centres))[label] / len(label)
    maps = (label, np.minimum(distance, 1), size)
    return Clusters(*(values.reshape(shape).astype(np.float32) for values in maps))


def boundary(label: Map) -> Map:
    """1 where a neighbour (of four) has another label, else 0."""
    down, across = label[1:] != label[:-1], label[:, 1:] != label[:, :-1]
    edge = np.zeros(label.shape, np.bool_)
    edge[1:] |= down
    edge[:-1] |= down
    edge[:, 1:] |= across
    edge[:, :-1] |= across
    return edge.astype(np.float32)


def _features(rgb: NDArray[np.uint8]) -> tuple[Map, float]:
    rows, columns = rgb.shape[:2]
    lab = cv2.cvtColor(rgb.astype(np.float32) / np.float32(255.0), cv2.COLOR_RGB2Lab)
    unit = place_unit((rows, columns))
    place = np.indices((rows, columns), np.float32) * np.float32(unit)
    return np.concatenate([np.asarray(lab).reshape(-1, 3), place.reshape(2, -1).T], axis=1), unit


def place_unit(shape: tuple[int, int]) -> float:
    """How much a distance of one cell of the Grid counts, in units of Lab."""
    rows, columns = shape
    return COMPACTNESS / max(float(np.sqrt(rows * columns / CLUSTERS)), 1.0)


def seeds(shape: tuple[int, int]) -> NDArray[np.intp]:
    """At most 50 cells on a regular lattice, as indices into the flat Grid."""
    rows, columns = shape
    down = max(1, min(rows, CLUSTERS, round(float(np.sqrt(CLUSTERS * rows / columns)))))
    across = max(1, min(columns, CLUSTERS // down))
    row = ((np.arange(down) + 0.5) * rows / down).astype(np.intp)
    column = ((np.arange(across) + 0.5) * columns / across).astype(np.intp)
    return (row[:, None] * columns + column).ravel()


def _nearest(features: Map, centres: Map) -> NDArray[np.intp]:
    # |f - c|^2 without |f|^2, which is the same for all centres.
    return np.argmin((centres**2).sum(axis=1) - 2 * features @ centres.T, axis=1)


def _means(features: Map, label: NDArray[np.intp], centres: Map) -> Map:
    count = np.bincount(label, minlength=len(centres))
    sums = np.stack([np.bincount(label, weights=column, minlength=len(centres)) for column in features.T], axis=1)
    means = sums / np.maximum(count, 1)[:, None]
    return np.where(count[:, None] > 0, means, centres).astype(np.float32)
