"""All settings: one frozen tree. A field's docstring is its help text on the command line."""

from collections.abc import Set
from typing import Any, Literal, Self, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import ErrorDetails

from foveate.pipeline.channels import CHANNELS, OPTIONAL_CHANNELS
from foveate.pipeline.phrase import parse, shortened
from foveate.pipeline.timecode import Seconds

MOST_FRAMES = 1_000_000_000
"""Frames that a setting may count: more than a year of 30 a second, and a number that the GPU's registers hold."""
_MOST_THREADS = 256


class _Group(BaseModel):
    """Numbers are numbers, finite ones, and switches are true or false: no kind stands in for another."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

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
    """Which frames of the source are read."""

    stream: int | None = Field(None, ge=0, le=65_535)
    """Which of the file's video streams to read, counted from 0. Default: the one marked as default in the file."""
    start: Seconds | None = None
    """Start at this time, such as 12.5 or 1:02:03.5, counted from the first frame. A negative time counts from the end
    of the file."""
    end: Seconds | None = None
    """Stop before this time. A negative time counts from the end of the file."""
    fps: float | None = Field(None, ge=1e-5, le=1000)
    """Sample this many frames per second: the frames shown at start, start + 1/fps and so on, each at most once.
    Default: every frame."""
    every: int | None = Field(None, ge=1, le=MOST_FRAMES)
    """Use the first frame and every Nth after it. Default: every frame."""
    frames: int | None = Field(None, ge=1, le=MOST_FRAMES)
    """Stop after this many frames. Frames skipped by fps or every do not count."""
    rate: float = Field(25.0, ge=1e-5, le=1000)
    """Frame rate assumed for sources without timestamps: image sequences, raw streams and frames passed in from
    Python."""

    @property
    def conflict(self) -> str | None:
        """What is wrong between the settings, in one line, or None."""
        if self.fps is not None and self.every is not None:
            return "source.fps and source.every cannot be combined; give one of them"
        start = self.start or 0.0
        if self.end is not None and (start < 0) == (self.end < 0) and self.end <= start:
            return f"source.end must be after source.start, {start:g} s, got {self.end:g} s"
        return None


class ChangeSettings(_Group):
    """When a tile counts as changed, and when everything is recomputed."""

    threshold: float = Field(2.0, ge=0, le=255)
    """A 32x32 tile counts as changed where the mean absolute difference of one of its 8x8 blocks, on the scale of 0 to
    255, exceeds this value."""
    noise: float = Field(1.5, ge=0, le=100)
    """In noisy video the threshold rises to this many times the frame-to-frame difference of the quietest quarter of
    the picture, up to 8. 0 turns this off."""
    keyframe_interval: int = Field(30, ge=1, le=MOST_FRAMES)
    """Frames between periodic keyframes, which go by the number of the frame, whatever other keyframes there are. On a
    keyframe everything is recomputed."""
    keyframe_offset: int = Field(0, ge=0, le=MOST_FRAMES)
    """Frames by which the first periodic keyframe comes earlier, modulo the interval: so that those of several streams
    do not fall on the same moment. foveate live chooses it for each of several sources."""
    cut_share: float = Field(0.5, gt=0, le=1)
    """A frame is a scene cut if at least this share of its tiles changed, and its structure changed as well
    (cut_structure)."""
    cut_structure: float = Field(0.35, gt=0, le=1)
    """A scene cut also needs more than this distance between the structures of the two frames: half of 1 less their
    correlation, and that neither resembles the other displaced, as in a fast pan. Structure is how the quarters of each
    tile differ in brightness, whatever the light. At 1 there are no cuts."""


class CacheSettings(_Group):
    """Scores and maps that are carried from frame to frame along the optical flow."""

    enabled: bool = True
    """Off: every frame is scored from scratch."""
    flow_level: Literal[2, 3] = 3
    """Pyramid level at which the optical flow is computed: 2 is a quarter, 3 an eighth of the frame's width and
    height."""
    confidence: float = Field(0.5, ge=0, le=1)
    """Cells whose flow has a lower confidence are recomputed."""
    blend: float = Field(0.3, ge=0, lt=1)
    """Weight of the previous frame's score, warped along the flow, where the flow's confidence is 1."""
    max_age: int = Field(30, ge=1, le=MOST_FRAMES)
    """Recompute a cell after this many frames at the latest."""


class ScoreSettings(_Group):
    """How the cells of the picture are scored."""

    enabled: bool | None = None
    """On: errors are weighted by the score of their cell. Off: all cells count alike, and only the error and the query
    decide. Default: on with a gaze point, the linear scorer, a second pass, or a strategy other than rate_distortion;
    otherwise off."""
    floor: float = Field(0.05, gt=0, le=1)
    """Weight of a cell whose score is 0. The weight of a cell is floor + score."""
    scorer: Literal["balance", "linear"] = "balance"
    """balance: a fixed formula of information (edges, detail), perspective (saliency, motion) and the query. linear: a
    weighted sum of channels."""
    weights: str | None = None
    """With scorer linear: the file with one weight per channel, .toml or .npz. foveate fit-scorer writes one."""
    passes: Literal[1, 2] = 1
    """2: score twice. The second pass can use the first one's score, as the channel pass1_score, and measures
    eccentricity from where that was highest, unless there is a gaze point."""

    def always(self, strategy: str) -> bool:
        """Whether the score weighs the errors of every frame, from which ``strategy`` chooses tokens."""
        if self.enabled is not None:
            return self.enabled
        return strategy != "rate_distortion" or self.scorer == "linear" or self.passes == 2

    def weighs(self, strategy: str, gazing: bool) -> bool:
        """Whether the score weighs the errors of a frame; ``gazing``: there is a gaze."""
        return self.always(strategy) or (gazing and self.enabled is None)


class AllocationSettings(_Group):
    """How the token budget is spent."""

    strategy: Literal[
        "rate_distortion", "three_stage", "five_stage", "adaptive", "cluster_first", "foveated", "soft"
    ] = "rate_distortion"
    """rate_distortion: a quadtree of coarse and fine tokens with the least weighted error. foveated: fine tokens around
    the gaze point, the best match of the query or the centre, coarser ones with distance. The others choose single
    cells with high scores, all at full resolution: three_stage and five_stage narrow the choice level by level,
    adaptive takes more tokens in complex frames, cluster_first chooses regions and then cells inside them, soft takes
    the best cells and has a differentiable form for training. With stream memory, cells are ranked by what the model
    lacks."""
    memory: Literal["frame", "stream"] = "frame"
    """What the model keeps of earlier frames. frame: nothing, so the tokens of each frame cover the whole picture.
    stream: all earlier tokens, so tokens go only where those no longer match the frame."""
    min_gain: float = Field(64.0, ge=0, le=1e15)
    """A token must reduce the weighted squared error by at least this much (8-bit units squared, summed over its
    pixels)."""
    budget_average: int | None = Field(None, ge=1, le=1_000_000)
    """With stream memory: tokens per frame on average, in place of a fixed budget. Single frames may take up to burst
    times as many, borrowing at most 7 frames' worth. Default: every frame has the same budget."""
    burst: float = Field(4.0, ge=1, le=8)
    """With budget_average: most tokens of one frame, as a multiple of the average."""
    merge: Literal[1, 2, 3] = 1
    """2: choose whole groups of 2x2 tokens, as Qwen-style models need; 3: groups of 3x3, as Gemma 4 needs."""
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    """How coarse tokens are enlarged to a picture. Stream memory compares this picture with the frame; overlay, report
    and web page show it."""
    share: float = Field(0.95, gt=0, le=1)
    """With strategy adaptive: keep the fewest cells that hold this share of the total score."""
    m0: float | None = Field(None, gt=0, le=1000)
    """With strategy foveated: M0 of the resolution M0 / (e + e0), in samples per pixel, where e is the distance from
    the point looked at, in half diagonals. Lowered if the tokens would exceed the budget. Default: as high as the
    budget allows."""
    e0: float = Field(0.05, gt=0, le=10)
    """With strategy foveated: the distance e0, in half diagonals, at which the resolution has halved."""

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
    """How cameras and network streams are read. Some settings also apply to files on servers."""

    policy: Literal["latest", "every"] = "latest"
    """When frames arrive faster than they can be processed: latest drops the oldest and counts them; every drops none,
    and falls behind."""
    transport: Literal["tcp", "udp"] = "tcp"
    """Transport of RTSP. udp loses packets on a busy network."""
    connect_timeout: float = Field(10.0, gt=0, le=600)
    """Seconds within which a new connection must deliver its first picture. For files on servers: seconds that a server
    may stay silent."""
    stall_timeout: float = Field(5.0, gt=0, le=600)
    """Seconds without a picture until the source counts as stalled. After twice as long it is reconnected."""
    retry_pause: float = Field(3.0, ge=0.5, le=600)
    """Longest pause between two attempts to reconnect, in seconds. The first pause is half a second and doubles each
    time; a connection that delivered pictures for 3 s resets it."""
    wait: bool = False
    """Keep trying if the very first connection fails, instead of ending with an error."""
    verify: bool = True
    """Check the certificates of https, rtsps and rtmps servers. Off: accept any certificate."""
    ca_file: str | None = None
    """PEM file with the certificates to trust in place of the system's, such as a camera's own."""
    format: str | None = Field(None, pattern=r"^[a-z0-9_]+$")
    """Pixel format or codec of a camera, such as mjpeg or yuyv422. Default: the camera's choice."""
    size: str | None = Field(None, pattern=r"^[1-9]\d{0,4}x[1-9]\d{0,4}$")
    """Picture size of a camera, such as 1280x720. Default: the camera's choice."""
    rate: float | None = Field(None, gt=0, le=1000)
    """Frame rate of a camera. Default: the camera's choice."""


class ClipSettings(_Group):
    """The image-text model of encoder open_clip, and how often it runs."""

    model: str = "ViT-B-16"
    """Architecture: a model name of open_clip, a folder with open_clip_config.json, or hf-hub:OWNER/NAME."""
    weights: str | None = None
    """Weights: a file, or a pretrained tag of open_clip, which is looked up in its cache and on its hub."""
    pca: str | None = None
    """The file that foveate fit-pca wrote for this model."""
    dense: Literal["native", "windows"] = "native"
    """native: encode the whole picture at once, in its own aspect ratio. windows: encode overlapping windows of it."""
    resolution: int | None = Field(None, ge=16, le=4096)
    """Longer side, in pixels, of what is encoded at once. Default: the model's own resolution for windows, twice that
    for the whole picture."""
    window: int = Field(448, ge=32, le=65_536)
    """Side of a window, in pixels of the video."""
    interval: int = Field(4, ge=1, le=MOST_FRAMES)
    """Encode a changed region again after at most this many frames."""
    stale: float = Field(0.3, ge=0, le=1)
    """Encode a region again when the optical flow has lost this share of its cells."""
    wait: bool | None = None
    """Wait for each encoding, so that results are reproducible. Default: on for files; live sources go on with the
    latest embeddings."""
    device: str | None = Field(None, pattern=r"^(cpu|cuda(:\d+)?)$")
    """Where the model runs: cpu, cuda or cuda:N. On cuda it runs in half precision. Default: cuda if torch finds a
    GPU."""
    threads: int | None = Field(None, ge=1, le=_MOST_THREADS)
    """CPU threads of the model. Default: all processors but one."""


class OcrSettings(_Group):
    """The text detector of text ocr, and how often it runs."""

    resolution: int | None = Field(None, ge=32, le=4096)
    """Longer side, in pixels, of the picture that the detector gets. In that picture, letters must be about 11 pixels
    high to be found. Default: the frame's own size, at most 960."""
    interval: int = Field(4, ge=1, le=MOST_FRAMES)
    """Run the detector on a changed picture after at most this many frames."""
    stale: float = Field(0.3, ge=0, le=1)
    """Run the detector again when the optical flow has lost this share of the cells."""
    wait: bool | None = None
    """Wait for each detection, so that results are reproducible. Default: on for files; live sources go on with the
    latest result."""
    threads: int | None = Field(None, ge=1, le=_MOST_THREADS)
    """CPU threads of the detector. Default: all processors but one, at most 4."""


QUERY_MAP = "query:"
"""What a map's name begins with that is the relevance to the words behind."""

_DEPTH = frozenset(channel.name for channel in OPTIONAL_CHANNELS if "depth" in (channel.name, *channel.depends))
_HANDED_OUT = frozenset({"score", "query"} | {channel.name for channel in (*CHANNELS, *OPTIONAL_CHANNELS)})


class Settings(_Group):
    """Everything that decides what is selected.

    >>> settings = Settings(budget=100, allocation=AllocationSettings(memory="stream"))
    >>> Settings.model_validate({"budget": 100, "allocation": {"memory": "stream"}}) == settings
    True
    """

    budget: int = Field(273, ge=1, le=1_000_000)
    """Most tokens per frame. Never exceeded."""
    query: tuple[str, ...] = Field((), strict=False)
    """What to look for, in words. "-sky": what to avoid. "red:0.5": with half the weight. Each query stands for itself;
    one match is enough."""
    query_image: tuple[str, ...] = Field((), strict=False)
    """Image files that show what to look for."""
    query_lenient: bool = False
    """Warn about a query that cannot be understood and go on without it, instead of ending with an error."""
    encoder: Literal["attributes", "open_clip"] = "attributes"
    """What interprets queries. attributes: names of colours, dark, bright, moving, still, text, positions and sizes,
    without a model. open_clip: any words, with an image-text model whose weights you supply."""
    text: Literal["strokes", "ocr"] = "strokes"
    """How text is found. strokes: areas of many thin strokes, which railings and foliage can resemble. ocr: a text
    detector; needs the extra ocr."""
    keep_embeddings: bool = False
    """Compute embeddings even without a query, so that a query can be set later."""
    regions: str | None = None
    """Choose tokens only in these regions, each with a budget of its own: a file of boxes, see docs/command-line.md."""
    region_tokens: int = Field(64, ge=1, le=1_000_000)
    """With regions: most tokens of each, unless the file says otherwise. If they add up to more than the budget, each
    region gets its part of it."""
    engine: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the pixel work is done. auto: on the GPU if there is a usable one, otherwise on the CPU."""
    device: int | None = Field(None, ge=0, le=255)
    """Which GPU, counted from 0, where engine cuda is used. Default: the first; foveate live with several processes
    spreads them over all."""
    analysis_level: int = Field(2, ge=0, le=2)
    """Pyramid level at which the channels are computed: 0 is full resolution, 2 a quarter of the width and height."""
    maps: tuple[str, ...] = Field((), strict=False)
    """Channels to return with each selection as maps with one value per cell. score is the final score, query the
    relevance to the queries, query:TEXT that to any other query."""
    patches: bool = False
    """Also return the pixels of each token. Outputs in NPZ and safetensors turn this on."""
    device_patches: bool = False
    """Return the pixels of each token on the GPU, as device_patches, for DLPack. Needs engine cuda."""
    depth: str | None = None
    """A depth model of your own: module:function or file.py:function. See docs/channels.md."""
    source: SourceSettings = SourceSettings()
    live: LiveSettings = LiveSettings()
    change: ChangeSettings = ChangeSettings()
    cache: CacheSettings = CacheSettings()
    score: ScoreSettings = ScoreSettings()
    allocation: AllocationSettings = AllocationSettings()
    clip: ClipSettings = ClipSettings()
    ocr: OcrSettings = OcrSettings()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
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
            raise ValueError("score.weights must be given with score.scorer = 'linear', and only then")
        if self.regions is not None and self.allocation.strategy != "rate_distortion":
            raise ValueError(f"regions need allocation.strategy 'rate_distortion', got {self.allocation.strategy!r}")
        if self.regions is not None and self.allocation.budget_average is not None:
            raise ValueError("regions and allocation.budget_average cannot be combined: budgets of regions are fixed")
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
    return shortened(text)


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
