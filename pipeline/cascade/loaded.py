"""What the settings name by a file or a module, and models, loaded once, before a stream begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from foveate.pipeline.cascade.depth import DepthModel
from foveate.pipeline.cascade.linear_scorer import LinearScorer, read_scorer
from foveate.pipeline.plugins import load_function
from foveate.pipeline.settings import Settings
from foveate.pipeline.text.detector import TextDetector, open_detector


@dataclass(frozen=True, slots=True)
class Loaded:
    """None for what the settings do not ask for."""

    scorer: LinearScorer | None = None
    depth: DepthModel | None = None
    detector: TextDetector | None = None


def load(settings: Settings) -> Loaded:
    """Read and import. Raises SettingsError, EngineError."""
    weights = settings.score.weights
    return Loaded(
        None if weights is None else read_scorer(Path(weights)),
        None if settings.depth is None else load_function(settings.depth),
        open_detector(settings.ocr) if settings.detects_text else None,
    )
