"""The settings as typed keywords, so that a type checker finds a wrong name or type. A test keeps them in step."""

from collections.abc import Mapping
from typing import Literal, TypedDict

from pydantic import ValidationError

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import (
    AllocationSettings,
    CacheSettings,
    ChangeSettings,
    ClipSettings,
    LiveSettings,
    OcrSettings,
    ScoreSettings,
    Settings,
    SourceSettings,
    settings_problem,
)
from foveate.pipeline.settings_errors import closest, leaves


class SourceKeywords(TypedDict, total=False):
    """See SourceSettings."""

    stream: int | None
    start: float | str | None
    end: float | str | None
    fps: float | None
    every: int | None
    frames: int | None
    rate: float


class ChangeKeywords(TypedDict, total=False):
    """See ChangeSettings."""

    threshold: float
    noise: float
    keyframe_interval: int
    keyframe_offset: int
    cut_share: float
    cut_structure: float


class CacheKeywords(TypedDict, total=False):
    """See CacheSettings."""

    enabled: bool
    flow_level: Literal[2, 3]
    confidence: float
    blend: float
    max_age: int


class ScoreKeywords(TypedDict, total=False):
    """See ScoreSettings."""

    enabled: bool | None
    floor: float
    scorer: Literal["balance", "linear"]
    weights: str | None
    passes: Literal[1, 2]


class AllocationKeywords(TypedDict, total=False):
    """See AllocationSettings."""

    strategy: Literal["rate_distortion", "three_stage", "five_stage", "adaptive", "cluster_first", "foveated", "soft"]
    memory: Literal["frame", "stream"]
    min_gain: float
    budget_average: int | None
    burst: float
    merge: Literal[1, 2, 3]
    interpolation: Literal["bilinear", "bicubic"]
    share: float
    m0: float | None
    e0: float


class LiveKeywords(TypedDict, total=False):
    """See LiveSettings."""

    policy: Literal["latest", "every"]
    transport: Literal["tcp", "udp"]
    connect_timeout: float
    stall_timeout: float
    retry_pause: float
    wait: bool
    verify: bool
    ca_file: str | None
    format: str | None
    size: str | None
    rate: float | None


class ClipKeywords(TypedDict, total=False):
    """See ClipSettings."""

    model: str
    weights: str | None
    pca: str | None
    dense: Literal["native", "windows"]
    resolution: int | None
    window: int
    interval: int
    stale: float
    wait: bool | None
    device: str | None
    threads: int | None


class OcrKeywords(TypedDict, total=False):
    """See OcrSettings."""

    resolution: int | None
    interval: int
    stale: float
    wait: bool | None
    threads: int | None


class SettingsKeywords(TypedDict, total=False):
    """See Settings. A group is given whole, or as those of its settings that are to be changed."""

    budget: int
    query: list[str] | tuple[str, ...]
    query_image: list[str] | tuple[str, ...]
    query_lenient: bool
    encoder: Literal["attributes", "open_clip"]
    text: Literal["strokes", "ocr"]
    keep_embeddings: bool
    regions: str | None
    region_tokens: int
    engine: Literal["auto", "cpu", "cuda"]
    device: int | None
    analysis_level: int
    maps: list[str] | tuple[str, ...]
    patches: bool
    device_patches: bool
    depth: str | None
    source: SourceSettings | SourceKeywords
    live: LiveSettings | LiveKeywords
    change: ChangeSettings | ChangeKeywords
    cache: CacheSettings | CacheKeywords
    score: ScoreSettings | ScoreKeywords
    allocation: AllocationSettings | AllocationKeywords
    clip: ClipSettings | ClipKeywords
    ocr: OcrSettings | OcrKeywords


def overridden(settings: Settings, overrides: Mapping[str, object]) -> Settings:
    """``settings`` with what ``overrides`` say, group by group. Raises SettingsError."""
    if not overrides:
        return settings
    merged = settings.model_dump()
    for name, value in overrides.items():
        old = merged.get(name)
        merged[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise SettingsError(settings_problem(error) + _meant(error)) from None


def _meant(error: ValidationError) -> str:
    """Of a setting that does not exist: the keyword that is meant, perhaps."""
    first = error.errors(include_url=False)[0]
    if first["type"] != "extra_forbidden":
        return ""
    close = closest(".".join(map(str, first["loc"])), (".".join(keys) for keys, _ in leaves()))
    group, _, name = (close or "").rpartition(".")
    return f"; did you mean {f'{group}={{{name!r}: ...}}' if group else f'{name}=...'}?" if name else ""
