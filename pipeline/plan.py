"""What a stream works with, found once when it is opened: files, models, queries, the maps it needs and who makes them.

Nothing that the settings name is looked up again while the stream runs.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from foveate.pipeline.cascade.depth import DepthModel
from foveate.pipeline.cascade.linear_scorer import LinearScorer, read_scorer
from foveate.pipeline.channels import CHANNELS
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.plugins import load_function
from foveate.pipeline.regions import RegionTimeline, read_regions
from foveate.pipeline.relevance.stream_query import StreamQuery, stream_query
from foveate.pipeline.settings import QUERY_MAP, Settings
from foveate.pipeline.text.detector import TextDetector, open_detector

_FEW: Final = 2  # processors on which one thread for all stages of the CPU engine is faster
_OF_QUERIES: Final = frozenset({channel.name for channel in CHANNELS if channel.group == "embedding"}) | {
    "query",
    "query_similarity",
}


@dataclass(frozen=True, slots=True, eq=False)
class StreamPlan:
    """The settings of a stream, and what follows from them. None for what they do not ask for."""

    settings: Settings
    queries: StreamQuery | None = None  # where the embedding channels are needed, also while nothing is looked for
    scorer: LinearScorer | None = None
    depth: DepthModel | None = None
    detector: TextDetector | None = None  # makes the channel "text", instead of the strokes
    regions: RegionTimeline | None = None
    attributes: bool = False  # the engine makes the attributes encoder's maps of pixels, the strokes' "text" among them
    one_thread: bool = False  # all stages of the CPU engine share a thread


def plan_stream(settings: Settings) -> StreamPlan:
    """The plan for ``settings`` on this machine.

    Raises SettingsError, also for a file of weights that cannot be used; EngineError, SourceError as ``stream_query``.
    """
    scorer = open_scorer(settings)
    channels = frozenset(settings.maps) | (frozenset() if scorer is None else scorer.channels)
    embeds = _embeds(settings, channels)
    of_attributes = embeds and settings.encoder == "attributes"
    detects = settings.text == "ocr" and ("text" in channels or of_attributes)
    return StreamPlan(
        settings,
        stream_query(settings) if embeds else None,
        scorer,
        None if settings.depth is None else load_function(settings.depth),
        open_detector(settings.ocr) if detects else None,
        None if settings.regions is None else read_regions(Path(settings.regions)),
        of_attributes or ("text" in channels and not detects),
        (os.cpu_count() or 1) <= _FEW,
    )


def open_scorer(settings: Settings) -> LinearScorer | None:
    """The scorer whose weights ``settings`` name. Raises SettingsError, also for channels that need other settings."""
    if settings.score.weights is None:
        return None
    scorer = read_scorer(Path(settings.score.weights))
    problem = settings.lacking_for(scorer.channels)
    if problem is not None:
        raise SettingsError(problem)
    return scorer


def _embeds(settings: Settings, channels: frozenset[str]) -> bool:
    """Whether the embedding channels are needed."""
    asks = any(name in _OF_QUERIES or name.startswith(QUERY_MAP) for name in channels)
    return settings.keep_embeddings or bool(settings.query or settings.query_image) or asks
