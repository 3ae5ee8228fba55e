"""What each cell is worth: information, perspective, participation, and how they combine."""

from typing import NamedTuple

import cv2
import numpy as np

from foveate.pipeline.cascade.linear_scorer import LinearScorer
from foveate.pipeline.geometry import CELL, Geometry, Map, Mask
from foveate.pipeline.spec import score as spec


class Scores(NamedTuple):
    """float32[grid] maps in [0, 1]."""

    score: Map
    information: Map
    perspective: Map
    participation: Map | None  # None without a query: absent, not zero


def information(channels: dict[str, Map]) -> Map:
    """0.4 max(edges, edges_inverted) + 0.3 highpass + 0.3 (1 - edge_distance)."""
    detail = np.maximum(channels["edges"], channels["edges_inverted"])
    near = np.float32(1.0) - channels["edge_distance"]
    seen = np.float32(spec.INFORMATION_EDGES) * detail + np.float32(spec.INFORMATION_HIGHPASS) * channels["highpass"]
    return seen + np.float32(spec.INFORMATION_DISTANCE) * near


def perspective(channels: dict[str, Map]) -> Map:
    """(0.6 saliency + 0.4 motion) (1 - 0.5 eccentricity)."""
    salient, moving = np.float32(spec.PERSPECTIVE_SALIENCY), np.float32(spec.PERSPECTIVE_MOTION)
    pull = salient * channels["saliency"] + moving * channels["motion"]
    return pull * (np.float32(1.0) - np.float32(spec.ECCENTRICITY_LOSS) * channels["eccentricity"])


def combine(information: Map, perspective: Map, participation: Map | None) -> Map:
    """The balance of focus and exploration: c p v + (1 - c) i^2 with c = 0.5 + 0.5 (1 - p); without p, a mean."""
    if participation is None:
        return np.float32(0.5) * (information + perspective)
    focus = np.float32(1.0) - np.float32(spec.FOCUS_LOSS) * participation
    return focus * participation * perspective + (np.float32(1.0) - focus) * information**2


def score_cells(
    channels: dict[str, Map], participation: Map | None, changed: Mask, linear: LinearScorer | None = None
) -> Scores:
    """All scores of one frame; the score itself by ``linear`` where there is one.

    Cells far from any edge, unchanged and irrelevant are culled: their scores are 0."""
    wanted = (channels["edge_distance"] < 1) | changed
    if participation is not None:
        wanted = wanted | (participation > 0)
    wanted = wanted.astype(np.float32)
    inform, view = information(channels) * wanted, perspective(channels) * wanted
    participating = None if participation is None else participation * wanted
    score = combine(inform, view, participating) if linear is None else linear.score(channels) * wanted
    return Scores(score, inform, view, participating)


def peak(score: Map, geometry: Geometry) -> tuple[float, float]:
    """The centre, in pixels, of the 5x5 cells with the greatest total score."""
    sums = cv2.boxFilter(score * geometry.inside, -1, (5, 5), normalize=False, borderType=cv2.BORDER_CONSTANT)
    row, column = divmod(int(np.argmax(np.where(geometry.inside, sums, -1))), score.shape[1])
    return (column + 0.5) * CELL, (row + 0.5) * CELL
