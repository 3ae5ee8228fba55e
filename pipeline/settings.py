"""All settings: one frozen tree. A field's docstring is its help text on the command line."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Literal, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import ErrorDetails

from foveate.pipeline.channels import CHANNELS, OPTIONAL_CHANNELS
from foveate.pipeline.phrase import parse
from foveate.pipeline.timecode import Seconds

MOST_FRAMES = 1_000_000_000
"""Frames that a setting may count: more than a year of 30 a second, and a number that the GPU's registers hold."""
_MOST_THREADS = 256
_SHOWN = 60  # characters of a value in a message


class _Group(BaseModel):
    """Numbers are numbers, finite ones, and switches are true or false: no kind stands in for another."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, strict=True, allow_inf_nan=False
    )

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any, info: ValidationInfo) -> Any:
        """NumPy's scalars as Python's; no 1.0 or true where 1 is one of a few numbers to choose from."""
        value = value.item() if isinstance(value, np.generic) else value
        annotation = cls.model_fields[str(info.field_name)].annotation
        if get_origin(annotation) is Literal and isinstance(value, (bool, float)):
            *first, last = map(repr, get_args(annotation))
            raise ValueError(f"must be {', '.join(first)} or {last}")
        return value


class SourceSettings(_Group):
    """What is read."""

    stream: int | None = Field(None, ge=0, le=65_535)
    """Which of the file's video streams, counted from 0. Default: the one the file marks as default."""
    start: Seconds | None = None
    """Look at what is shown from this time on, such as 12.5 or 1:02:03.5, counted from the first frame; negative:
    before the end."""
    end: Seconds | None = None
    """Look at what is shown before this time."""
    fps: float | None = Field(None, ge=1e-5, le=1000)
    """Look at so many frames a second, evenly spaced in time: the one that is shown at start, start + 1/fps and so on,
    each once. Default: every frame."""
    every: int | None = Field(None, ge=1, le=MOST_FRAMES)
    """Look at the first frame and every Nth after it. Default: every frame."""
    frames: int | None = Field(None, ge=1, le=MOST_FRAMES)
    """Stop after this many frames; those that are not looked at do not count."""
    rate: float = Field(25.0, ge=1e-5, le=1000)
    """Frames per second where the source has no times: image sequences, raw streams and frames of your own."""

    @property
    def conflict(self) -> str | None:
        """What is wrong between the settings, in one line, or None."""
        if self.fps is not None and self.every is not None:
            return "source.fps and source.every exclude each other; give one of them"
        start = self.start or 0.0
        if self.end is not None and (start < 0) == (self.end < 0) and self.end <= start:
            return f"source.end must be behind source.start, {start:g} s, got {self.end:g} s"
        return None


class ChangeSettings(_Group):
    """When a tile counts as changed, and when everything is recomputed."""

    threshold: float = Field(2.0, ge=0, le=255)
    """Mean absolute difference of an 8x8 block, in 8-bit units, above which its tile is dirty."""
    noise: float = Field(1.5, ge=0, le=100)
    """Where the picture is noisy, the threshold is this many times what its quietest quarter differs by from frame to
    frame, at most 8. 0: the threshold alone counts."""
    keyframe_interval: int = Field(30, ge=1, le=MOST_FRAMES)
    """Frames between periodic keyframes."""
    cut_share: float = Field(0.6, gt=0, le=1)
    """A scene cut needs at least this share of tiles changed ..."""
    cut_histogram: float = Field(0.25, gt=0, le=1)
    """... and at least this distance between the luma histograms (half their L1 distance)."""


class CacheSettings(_Group):
    """Maps carried from frame to frame along the optical flow."""

    enabled: bool = True
    """Off: every frame is scored alone."""
    flow_level: Literal[2, 3] = 3
    """Pyramid level on which the flow is searched; 3 is an eighth of the picture's size."""
    confidence: float = Field(0.5, ge=0, le=1)
    """Flow below this confidence is not followed: the cell is recomputed."""
    blend: float = Field(0.3, ge=0, lt=1)
    """Weight of the previous score, carried along the flow at full confidence."""
    max_age: int = Field(30, ge=1, le=MOST_FRAMES)
    """Frames after which a cached cell is recomputed in any case."""


class ScoreSettings(_Group):
    """What a cell is worth."""

    enabled: bool | None = None
    """On: errors count by the score of their cell. Off: all alike, so that only the error and the query decide. None:
    on where there is a gaze, a scorer of one's own, a second pass, or a strategy other than rate_distortion."""
    floor: float = Field(0.05, gt=0, le=1)
    """Weight of a cell with score 0; where the score counts, a cell's weight is floor + score."""
    scorer: Literal["balance", "linear"] = "balance"
    """balance: information, perspective and the query, in the proportions of the design. linear: a weighted sum of
    channels."""
    weights: str | None = None
    """linear: the file with one weight per channel, .toml or .npz; foveate fit-scorer writes one."""
    passes: Literal[1, 2] = 1
    """2: look twice. The second look scores with the first one's result as the channel pass1_score, and measures the
    eccentricity from where the first one found most, unless there is a gaze."""

    def always(self, strategy: str) -> bool:
        """Whether the score weighs the errors of every frame, from which ``strategy`` chooses tokens."""
        if self.enabled is not None:
            return self.enabled
        return strategy != "rate_distortion" or self.scorer == "linear" or self.passes == 2

    def weighs(self, strategy: str, gazing: bool) -> bool:
        """Whether the score weighs the errors of a frame; ``gazing``: there is a gaze."""
        return self.always(strategy) or (gazing and self.enabled is None)


class AllocationSettings(_Group):
    """How the budget is spent."""

    strategy: Literal[
        "rate_distortion", "three_stage", "five_stage", "adaptive", "cluster_first", "foveated", "soft"
    ] = "rate_distortion"
    """rate_distortion: a quadtree of coarse and fine tokens with the least weighted error. foveated: fine around the
    gaze, the query's best cell or the centre, coarser with the distance. The others choose cells with high scores, all
    at full resolution: three_stage and five_stage cull them coarse to fine, adaptive keeps as many as the frame is
    complex, cluster_first keeps the best regions and then cells inside, soft just takes the best, for training. In
    stream memory the best cells are those of which the reader lacks most."""
    memory: Literal["frame", "stream"] = "frame"
    """frame: every frame stands alone. stream: the reader keeps earlier tokens, and tokens are spent only
    where its picture is wrong."""
    min_gain: float = Field(64.0, ge=0, le=1e15)
    """Least weighted squared error (8-bit units squared, summed over pixels) that a token must remove."""
    budget_average: int | None = Field(None, ge=1, le=1_000_000)
    """stream: tokens per frame on average, instead of at most as many as the budget; a frame may take more and the next
    ones less, at most 7 frames' worth ahead. Default: the budget is fixed."""
    burst: float = Field(4.0, ge=1, le=8)
    """With budget_average: most tokens of one frame, as a multiple of it."""
    merge: Literal[1, 2, 3] = 1
    """2: whole 2x2 groups of tokens, as Qwen-style models need; 3: whole 3x3 groups, as Gemma 4 needs."""
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    """How the reader is taken to enlarge coarse tokens: what stream memory compares with the frame, and what overlay,
    report and page show."""
    share: float = Field(0.95, gt=0, le=1)
    """adaptive: the cells kept are the fewest that hold this share of what all cells are worth."""
    m0: float | None = Field(None, gt=0, le=1000)
    """foveated: M0 of the resolution M0 / (e + e0), in samples per pixel, e in half diagonals; it is lowered where the
    tokens would exceed the budget. Default: as high as the budget allows."""
    e0: float = Field(0.05, gt=0, le=10)
    """foveated: e0, the distance from the point looked at, in half diagonals, at which the resolution has halved."""

    @property
    def problem(self) -> str | None:
        """What is wrong between the settings, in one line, or None."""
        average, fewest = self.budget_average, self.merge**2
        if average is None:
            return None
        if self.memory != "stream" or self.strategy != "rate_distortion":
            return "allocation.budget_average needs memory 'stream' and strategy 'rate_distortion'"
        if average < fewest:
            return f"allocation.budget_average must be at least {fewest} with merge = {self.merge}, got {average}"
        return None

    def most(self, rate: int) -> int:
        """Most tokens of one frame; ``rate`` is Settings.rate, or what it was changed to."""
        return rate if self.budget_average is None else int(self.burst * rate)


class LiveSettings(_Group):
    """How cameras and network streams are read; of files on servers, how long to wait and whom to trust."""

    policy: Literal["latest", "every"] = "latest"
    """latest: where frames come faster than they are worked on, the oldest is dropped and counted. every: none is
    dropped; a slow consumer falls behind until the sender gives up."""
    transport: Literal["tcp", "udp"] = "tcp"
    """What carries RTSP; udp loses packets where the network is busy."""
    connect_timeout: float = Field(10.0, gt=0, le=600)
    """Seconds until the first picture, from the moment a connection is tried. Of files on servers: that one may be
    silent."""
    stall_timeout: float = Field(5.0, gt=0, le=600)
    """Seconds without a picture until the source counts as stalled; after twice as many it is connected anew."""
    retry_pause: float = Field(3.0, ge=0.5, le=600)
    """Most seconds between two tries to reconnect; the first pause is half a second, each further one twice as long,
    until a connection has brought pictures for 3 s."""
    wait: bool = False
    """Keep trying also where the very first connection fails, instead of ending with an error."""
    verify: bool = True
    """Refuse https, rtsps and rtmps servers whose certificate is not trusted. false: believe anyone."""
    ca_file: str | None = None
    """A file of certificates (PEM) that are trusted instead of the system's, such as a camera's own."""
    format: str | None = Field(None, pattern=r"^[a-z0-9_]+$")
    """A camera's picture format, such as mjpeg or yuyv422. Default: what the camera prefers."""
    size: str | None = Field(None, pattern=r"^[1-9]\d{0,4}x[1-9]\d{0,4}$")
    """A camera's picture size, such as 1280x720. Default: what the camera prefers."""
    rate: float | None = Field(None, gt=0, le=1000)
    """A camera's frames per second. Default: what the camera prefers."""


class ClipSettings(_Group):
    """The image-text model behind the encoder "open_clip", and when it looks."""

    model: str = "ViT-B-16"
    """The architecture, by open_clip's name for it; a folder with open_clip_config.json; or hf-hub:OWNER/NAME."""
    weights: str | None = None
    """A file with the model's weights, or open_clip's tag for some, which are looked for in its cache and its hub."""
    pca: str | None = None
    """The file that foveate fit-pca made for this model."""
    dense: Literal["native", "windows"] = "native"
    """native: the whole picture is encoded at once, in its own aspect. windows: overlapping windows of it."""
    resolution: int | None = Field(None, ge=16, le=4096)
    """Pixels to which the longer side of what is encoded at once is scaled. Default: the model's own for windows, twice
    as much for the whole picture."""
    window: int = Field(448, ge=32, le=65_536)
    """Side of a window in pixels of the video."""
    interval: int = Field(4, ge=1, le=MOST_FRAMES)
    """Frames after which a changed region is encoded again, if not earlier."""
    stale: float = Field(0.3, ge=0, le=1)
    """Share of a region's cells that the flow may lose before it is encoded again."""
    wait: bool | None = None
    """Wait for each encoding, so that two runs are equal. Default: for files; live sources go on with older ones."""
    device: str | None = Field(None, pattern=r"^(cpu|cuda(:\d+)?)$")
    """Where the model runs: cpu, or cuda in half precision. Default: cuda where torch finds a GPU."""
    threads: int | None = Field(None, ge=1, le=_MOST_THREADS)
    """Threads of the model on the CPU. Default: all processors but one, which is left to the video."""


class OcrSettings(_Group):
    """The text detector behind text "ocr", and when it looks."""

    resolution: int | None = Field(None, ge=32, le=4096)
    """Pixels to which the longer side of the picture is scaled for it; it finds letters that are then 11 pixels high.
    Default: its own, at most 960."""
    interval: int = Field(4, ge=1, le=MOST_FRAMES)
    """Frames after which a changed picture is looked at again, if not earlier."""
    stale: float = Field(0.3, ge=0, le=1)
    """Share of the picture's cells that the flow may lose before it is looked at again."""
    wait: bool | None = None
    """Wait for each look, so that two runs are equal. Default: for files; live sources go on with older text."""
    threads: int | None = Field(None, ge=1, le=_MOST_THREADS)
    """Threads of the detector. Default: all processors but one, at most 4."""


QUERY_MAP = "query:"
"""What a map's name begins with that is the relevance to the words behind."""

_DEPTH = frozenset(channel.name for channel in OPTIONAL_CHANNELS if "depth" in (channel.name, *channel.depends))
_HANDED_OUT = frozenset({"score", "query"} | {channel.name for channel in (*CHANNELS, *OPTIONAL_CHANNELS)})


class Settings(_Group):
    """Everything that decides what is selected."""

    budget: int = Field(273, ge=1, le=1_000_000)
    """Most tokens per frame."""
    query: tuple[str, ...] = Field((), strict=False)
    """What to look for, in words; a minus sign before them: what not to; :0.5 behind them: with this weight."""
    query_image: tuple[str, ...] = Field((), strict=False)
    """Picture files that show what to look for."""
    query_lenient: bool = False
    """Go on without a query of which nothing is understood, instead of ending with an error."""
    encoder: Literal["attributes", "open_clip"] = "attributes"
    """What understands queries. attributes: names of colours, dark, bright, moving, still, text, places, sizes.
    open_clip: any words, by a model whose weights are given."""
    text: Literal["strokes", "ocr"] = "strokes"
    """What finds text. strokes: many thin strokes side by side, as railings and leaves have them too. ocr: a detector,
    by the extra ocr."""
    keep_embeddings: bool = False
    """Keep what queries need also while there is none, so that one can be asked later on."""
    engine: Literal["auto", "cpu", "cuda"] = "auto"
    """What does the pixel work; auto takes the GPU where it works."""
    analysis_level: int = Field(2, ge=0, le=2)
    """Pyramid level at which the channels are kept: 0 is full resolution, 2 a quarter of it."""
    maps: tuple[str, ...] = Field((), strict=False)
    """Channels to hand out with each selection as maps over the Grid; "score" is the final score."""
    patches: bool = False
    """Sample the tokens' pixels as well."""
    device_patches: bool = False
    """Have them on the GPU, for DLPack: each selection's device_patches. Engine cuda only."""
    depth: str | None = None
    """A depth model of your own, module:function or file.py:function; see docs/channels.md."""
    source: SourceSettings = SourceSettings()
    live: LiveSettings = LiveSettings()
    change: ChangeSettings = ChangeSettings()
    cache: CacheSettings = CacheSettings()
    score: ScoreSettings = ScoreSettings()
    allocation: AllocationSettings = AllocationSettings()
    clip: ClipSettings = ClipSettings()
    ocr: OcrSettings = OcrSettings()

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        unknown = [name for name in self.maps if name not in _HANDED_OUT and not name.startswith(QUERY_MAP)]
        if unknown:
            raise ValueError(f"maps must be among {', '.join(sorted(_HANDED_OUT))}, query:TEXT; got {unknown[0]!r}")
        for query in (*self.query, *(name.removeprefix(QUERY_MAP) for name in self.maps if name.startswith(QUERY_MAP))):
            parse(query)
        if self.device_patches and self.engine == "cpu":
            raise ValueError("device_patches needs a GPU, and engine is 'cpu'")
        if self.source.conflict is not None:
            raise ValueError(self.source.conflict)
        if self.allocation.problem is not None:
            raise ValueError(self.allocation.problem)
        if self.budget < self.allocation.merge**2:
            merge = self.allocation.merge
            raise ValueError(f"budget must be at least {merge**2} with merge = {merge}, got {self.budget}")
        if (self.score.scorer == "linear") != (self.score.weights is not None):
            raise ValueError("score.weights names a file where score.scorer is 'linear', and only there")
        problem = self.lacking_for(frozenset(self.maps))
        if problem is not None:
            raise ValueError(problem)
        return self

    def lacking_for(self, channels: Set[str]) -> str | None:
        """What else must be set for ``channels`` to be made, in one line; None where nothing is missing."""
        of_depth = channels & _DEPTH
        if of_depth and self.depth is None:
            return f"the channel {min(of_depth)!r} needs a depth model; name one with the setting 'depth'"
        if "pass1_score" in channels and self.score.passes == 1:
            return "the channel 'pass1_score' needs score.passes = 2"
        return None

    @property
    def rate(self) -> int:
        """Tokens that a frame may have: on average with ``allocation.budget_average``, else at most."""
        return self.allocation.budget_average or self.budget


def settings_problem(error: ValidationError) -> str:
    """The first problem of a pydantic error, in one line: field, rule, value."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if not field:
        return rule(first)
    if first["type"] == "extra_forbidden":
        return f"unknown setting {field!r}"
    return f"{field} {rule(first)}, got {shown_value(first['input'])}"


def shown_value(value: object) -> str:
    """A value as a message shows it: in one line, and no longer than a line has room for."""
    try:
        text = repr(value)
    except ValueError:  # of Python's, which writes no longer numbers
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def rule(fault: ErrorDetails) -> str:
    """What a setting must be, to stand behind its name; of a rule about several settings the whole sentence."""
    match fault["type"]:
        case "tuple_type":
            return (
                f"must be a list such as [{fault['input']!r}]" if isinstance(fault["input"], str) else "must be a list"
            )
        case "model_type":
            return "must be a table of settings"
    return fault["msg"].removeprefix("Value error, ").replace("Input should", "must")
