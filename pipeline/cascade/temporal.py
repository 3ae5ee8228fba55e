"""Channels made from earlier frames and from feedback, warped along the optical flow."""

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.cache import Cache
from foveate.pipeline.cascade.clusters import boundary, cluster
from foveate.pipeline.cascade.coverage import spread_tokens
from foveate.pipeline.cascade.depth import NAMES as DEPTH_NAMES
from foveate.pipeline.cascade.depth import from_depth
from foveate.pipeline.cascade.feedback import FrameFeedback
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import CELL, Geometry, Map, Mask
from foveate.pipeline.settings import CacheSettings
from foveate.pipeline.spec import memory

FIXATION_KEEP, ATTENTION_KEEP, GAZE_KEEP = (
    np.float32(kept) for kept in (memory.FIXATION_KEEP, memory.ATTENTION_KEEP, memory.GAZE_KEEP)
)
GAZE_SIGMA = 3.0  # cells
_CLUSTER = ("cluster_id", "cluster_distance", "cluster_size")
_WARPED = ("prev_relevance", "prev_saliency", "fixation", "attention", "depth", *_CLUSTER)
_SOURCES = {  # what a channel is made from, if not itself
    "prev_attention": "attention",
    "boundary": "cluster_id",
    **dict.fromkeys(DEPTH_NAMES, "depth"),
}


class Temporal:
    """State kept from frame to frame, over the Grid, for frames of one size. Only ``used`` channels are kept."""

    def __init__(self, geometry: Geometry, settings: CacheSettings, used: frozenset[str]) -> None:
        kept = {_SOURCES.get(name, name) for name in used} | {"prev_relevance"}
        self._geometry = geometry
        self._cache = Cache(
            geometry.grid,
            tuple(name for name in _WARPED if name in kept and BY_NAME[name].reduce != "nearest"),
            tuple(name for name in _WARPED if name in kept and BY_NAME[name].reduce == "nearest"),
            settings,
        )
        self._clustered = not kept.isdisjoint(_CLUSTER)
        self._gaze = np.zeros(geometry.grid, np.float32)
        self._prev_attention = np.zeros(geometry.grid, np.float32)
        self._row, self._column = np.indices(geometry.grid, dtype=np.float32) + np.float32(0.5)
        self.eccentricity = self.distance_to(None)

    def clear(self) -> None:
        """Reset the cache on a keyframe."""
        self._cache.clear()

    def warp(self, flow: Flow | None) -> Mask:
        """Warp the maps to this frame. Returns bool[grid]: cells whose maps may be reused."""
        return self._cache.warp(flow)

    def apply(self, feedback: FrameFeedback) -> None:
        """Apply the feedback since the last frame. Attention adds up, and decays by a tenth per frame."""
        maps = self._cache.maps
        if "attention" in maps:
            self._prev_attention = maps["attention"]
            attention = self._prev_attention * ATTENTION_KEEP
            maps["attention"] = (
                attention if feedback.attention is None else np.minimum(attention + feedback.attention, 1)
            )
        self._gaze *= GAZE_KEEP
        if feedback.gaze_moved:
            self.eccentricity = self.distance_to(feedback.gaze)
            if feedback.gaze is not None:
                self._gaze = np.maximum(self._gaze, self._bump(feedback.gaze))

    def remember(self, score: Map, saliency: Map, tokens: Tokens, valid: Mask) -> None:
        """Store this frame's maps for the next. A token of LOD l counts 4**-l as a fixation of its cells."""
        maps = self._cache.maps
        maps["prev_relevance"] = score
        if "prev_saliency" in maps:
            maps["prev_saliency"] = saliency
        if "fixation" in maps:
            detail = np.float32(0.25) ** tokens.lod.astype(np.float32)
            selected = spread_tokens(tokens, detail, self._geometry)
            maps["fixation"] = FIXATION_KEEP * maps["fixation"] + (1 - FIXATION_KEEP) * selected
        self._cache.advance_age(valid)

    def cluster(self, rgb: NDArray[np.uint8]) -> None:
        """Recompute the clusters from the colours of the cells, uint8[rows, columns, 3]."""
        clusters = dict(zip(_CLUSTER, cluster(rgb), strict=True))
        self._cache.maps |= {name: values for name, values in clusters.items() if name in self._cache.maps}

    def set_depth(self, depth: Map) -> None:
        """Set the depth of the cells, float32[grid]."""
        self._cache.maps["depth"] = depth

    @property
    def uses_clusters(self) -> bool:
        """True where a channel in use comes from the clusters."""
        return self._clustered

    @property
    def uses_depth(self) -> bool:
        """True where a channel in use comes from the depth."""
        return "depth" in self._cache.maps

    @property
    def previous_score(self) -> Map:
        """The previous frame's final score, warped to this frame: float32[grid]."""
        return self._cache.maps["prev_relevance"]

    def channel(self, name: str) -> Map:
        """One channel in use, float32[grid]. Raises KeyError for one that is not kept here."""
        match name:
            case "eccentricity":
                return self.eccentricity
            case "x":
                return np.minimum(self._column * np.float32(CELL / self._geometry.width), np.float32(1.0))
            case "y":
                return np.minimum(self._row * np.float32(CELL / self._geometry.height), np.float32(1.0))
            case "gaze":
                return self._gaze.copy()
            case "prev_attention":
                return self._prev_attention
            case "boundary":
                return boundary(self._cache.maps["cluster_id"])
            case "rope_sin":
                return np.sin(self._angle())
            case "rope_cos":
                return np.cos(self._angle())
        if name in DEPTH_NAMES:
            return from_depth(name, self._cache.maps["depth"])
        return self._cache.maps[name]

    def _angle(self) -> Map:
        """The slowest rotation of a 2-D rotary embedding with mixed axes (Heo et al. 2024): pi x + pi y / 2.

        At most 1.5 pi, so that it never wraps around; the product of two cells' pairs depends on their offset alone.
        """
        return np.float32(np.pi) * self.channel("x") + np.float32(np.pi / 2) * self.channel("y")

    def distance_to(self, point: tuple[float, float] | None) -> Map:
        """Eccentricity: distance to ``point`` (pixels; None: the centre) / half the diagonal, clipped to 1."""
        width, height = self._geometry.width, self._geometry.height
        x, y = (width / 2, height / 2) if point is None else point
        across, down = self._column * np.float32(CELL) - np.float32(x), self._row * np.float32(CELL) - np.float32(y)
        distance = np.hypot(across, down)
        return np.minimum(distance / np.float32(np.hypot(width, height) / 2), 1).astype(np.float32)

    def _bump(self, point: tuple[float, float]) -> Map:
        square = (self._column - np.float32(point[0] / CELL)) ** 2 + (self._row - np.float32(point[1] / CELL)) ** 2
        return np.exp(square * np.float32(-0.5 / GAZE_SIGMA**2))
