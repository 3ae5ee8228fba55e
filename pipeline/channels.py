"""The table of all channels: group, range, how each reduces to a coarser level, how far a change spreads."""

from dataclasses import dataclass
from typing import Literal

Reduce = Literal["mean", "max", "min", "nearest"]
Group = Literal["colour", "local", "position", "cluster", "temporal", "embedding", "global", "feedback", "optional"]


@dataclass(frozen=True, slots=True)
class Channel:
    """One named map. Values lie in [low, high]."""

    name: str
    group: Group
    reduce: Reduce  # how a value of the next level comes from 2x2 values; an identity is never averaged
    reach: int | None  # level-0 pixels that a changed pixel spreads; None: anywhere (global), 0: nowhere
    depends: tuple[str, ...] = ("luma",)
    low: float = 0.0
    high: float = 1.0


EMBEDDING = "clip"
"""What the names of the embedding channels begin with."""


def _embedding(index: int) -> Channel:
    return Channel(f"{EMBEDDING}{index}", "embedding", "mean", None, ("luma", "chroma", "flow"), -1.0, 1.0)


CHANNELS: tuple[Channel, ...] = (
    Channel("red", "colour", "mean", 1, ("luma", "chroma")),
    Channel("green", "colour", "mean", 1, ("luma", "chroma")),
    Channel("blue", "colour", "mean", 1, ("luma", "chroma")),
    Channel("edges", "local", "max", 4),
    Channel("edges_inverted", "local", "max", 4),
    Channel("highpass", "local", "max", 16, ("luma", "lowpass")),
    Channel("lowpass", "local", "mean", 16),
    Channel("motion", "local", "max", 0),
    Channel("saliency", "local", "mean", 16, ("luma", "chroma")),
    Channel("x", "position", "mean", 0, ()),
    Channel("y", "position", "mean", 0, ()),
    Channel("eccentricity", "position", "mean", 0, ("gaze",)),
    Channel("cluster_id", "cluster", "nearest", None, ("red", "green", "blue", "flow"), 0.0, 49.0),
    Channel("cluster_distance", "cluster", "mean", None, ("cluster_id",)),
    Channel("cluster_size", "cluster", "nearest", None, ("cluster_id",)),
    Channel("prev_relevance", "temporal", "mean", None, ("flow",)),
    Channel("prev_saliency", "temporal", "mean", None, ("saliency", "flow")),
    Channel("fixation", "temporal", "mean", None, ("flow",)),
    *(_embedding(index) for index in range(16)),
    Channel("edge_distance", "global", "min", None, ("edges", "edges_inverted")),
    Channel("prev_attention", "feedback", "mean", None, ("attention", "flow")),
    Channel("attention", "feedback", "mean", None, ("flow",)),
    Channel("gaze", "feedback", "mean", 0, ()),
    Channel("boundary", "cluster", "max", None, ("cluster_id",)),
    Channel("text", "local", "max", 48),
)
"""The 40 channels of the default layout, in its order."""

OPTIONAL_CHANNELS: tuple[Channel, ...] = (
    Channel("rope_sin", "optional", "mean", 0, (), -1.0, 1.0),
    Channel("rope_cos", "optional", "mean", 0, (), -1.0, 1.0),
    Channel("depth", "optional", "mean", None, ()),
    Channel("normal_x", "optional", "mean", None, ("depth",), -1.0, 1.0),
    Channel("normal_y", "optional", "mean", None, ("depth",), -1.0, 1.0),
    Channel("normal_z", "optional", "mean", None, ("depth",), -1.0, 1.0),
    Channel("occlusion", "optional", "max", None, ("depth",)),
    Channel("query_similarity", "optional", "mean", None, tuple(f"clip{index}" for index in range(16))),
    Channel("pass1_score", "optional", "mean", None, ()),
)
"""Declared, off by default."""

BY_NAME: dict[str, Channel] = {channel.name: channel for channel in (*CHANNELS, *OPTIONAL_CHANNELS)}
