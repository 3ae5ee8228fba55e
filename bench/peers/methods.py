"""The methods of choosing tokens that are compared, by name."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, get_args

import numpy as np

from foveate.bench.clips.footage import CELL, Footage
from foveate.bench.peers.cells import Mask
from foveate.bench.peers.changes import dtd, evs, evs_causal, rlt
from foveate.bench.peers.outliers import stc, vidcom2
from foveate.bench.peers.plain import random, saliency, uniform
from foveate.bench.peers.reconstruction import gazing, replenishment
from foveate.bench.peers.sent import Method, Sent, of_mask
from foveate.bench.reader.painting import downscaled, tokens_of
from foveate.bench.reader.texture import Texture
from foveate.pipeline.settings import AllocationSettings
from foveate.pipeline.stream import open_stream


def cells(choose: Callable[[Footage, int], list[Mask]], footage: Footage, budget: int) -> Iterator[Sent]:
    """The tokens of a peer that chooses cells of the true frames."""
    for picture, mask in zip(footage.pictures, choose(footage, budget), strict=True):
        yield of_mask(picture.planes, mask)


def downscale(footage: Footage, budget: int) -> Iterator[Sent]:
    """The whole frame resized so that it has at most K patches, of a shape as close as they allow."""
    height, width = footage.pictures[0].luma.shape
    rows, columns = patches_like((height, width), budget)
    coarser = 0.5 * math.log2(height * width / (rows * columns * CELL * CELL))
    whole = of_mask((), np.ones(footage.grid, np.bool_))
    for picture in footage.pictures:
        luma = downscaled(picture.luma, rows * CELL, columns * CELL)
        chroma = (downscaled(plane, rows * CELL // 2, columns * CELL // 2) for plane in (picture.cb, picture.cr))
        yield Sent((luma, *chroma), whole.tokens, rows * columns / len(whole.tokens), max(coarser, 0.0))


def patches_like(shape: tuple[int, ...], budget: int) -> tuple[int, int]:
    """Rows and columns of at most ``budget`` patches: the rows by the picture's shape, then the columns that fit."""
    height, width = shape
    scale = min(1.0, (budget * CELL * CELL / (height * width)) ** 0.5)
    rows = min(max(1, round(height * scale / CELL)), budget)
    return rows, min(-(-width // CELL), max(1, budget // rows))


def ours(options: Mapping[str, Any], footage: Footage, budget: int) -> Iterator[Sent]:
    """Foveate, under the settings of ``options``. Its tokens show the texture, which is close to the true frame."""
    with open_stream(footage.path, budget=budget, source={"frames": len(footage.pictures)}, **options) as stream:
        texture = Texture(stream.settings.change.threshold, stream.settings.change.noise)
        for picture, selection in zip(footage.pictures, stream, strict=True):
            planes = texture.show(picture, selection.keyframe)
            yield Sent(planes, tokens_of(selection), interpolation=stream.settings.allocation.interpolation)


def allocated(
    allocation: Mapping[str, Any], further: Mapping[str, Any], footage: Footage, budget: int
) -> Iterator[Sent]:
    """Foveate, under settings of its allocation."""
    yield from ours({"allocation": {**allocation, **further}}, footage, budget)


def averaged(allocation: Mapping[str, Any], footage: Footage, budget: int) -> Iterator[Sent]:
    """Foveate in stream memory, with the budget as an average."""
    yield from allocated({"memory": "stream", "budget_average": budget}, allocation, footage, budget)


def whole(footage: Footage, budget: int) -> Iterator[Sent]:
    """Every cell of every frame, whatever the budget: the reference."""
    for picture in footage.pictures:
        yield of_mask(picture.planes, np.ones(footage.grid, np.bool_))


def with_queries(*queries: str) -> dict[str, Method]:
    """The whole frame, the strongest peers, and Foveate without and with queries, for measures by a model."""
    chosen: dict[str, Method] = {"whole frame": whole}
    chosen |= {name: PEERS[name] for name in _STRONGEST}
    for memory in ("frame", "stream"):
        for query in ((), *((query,) for query in queries)):
            name = ", ".join([f"Foveate, {memory}", *(f"--query {text}" for text in query)])
            chosen[name] = partial(ours, {"allocation": {"memory": memory}, "query": query})
    return chosen


PEERS: Final[Mapping[str, Method]] = {
    "downscale": downscale,
    "uniform": partial(cells, uniform),
    "random": partial(cells, random),
    "saliency": partial(cells, saliency),
    "EVS": partial(cells, evs),
    "EVS, causal": partial(cells, evs_causal),
    "DTD": partial(cells, dtd),
    "RLT": partial(cells, rlt),
    "VidCom2": partial(cells, vidcom2),
    "STC": partial(cells, stc),
    "conditional replenishment": replenishment,
    "AutoGaze-like": gazing,
}

_STRONGEST: Final = ("downscale", "EVS, causal", "conditional replenishment", "AutoGaze-like")

OURS: Final[Mapping[str, Method]] = {
    "Foveate, frame": partial(ours, {"allocation": {"memory": "frame"}}),
    "Foveate, stream": partial(ours, {"allocation": {"memory": "stream"}}),
    "Foveate, frame, score on": partial(ours, {"allocation": {"memory": "frame"}, "score": {"enabled": True}}),
    "Foveate, stream, score on": partial(ours, {"allocation": {"memory": "stream"}, "score": {"enabled": True}}),
}

METHODS: Final[Mapping[str, Method]] = {**PEERS, **OURS}

OPTIONS: Final[Mapping[str, Method]] = {
    f"{name}, {interpolation}": partial(run, {"interpolation": interpolation})
    for interpolation in ("bilinear", "bicubic")
    for name, run in (
        ("frame", partial(allocated, {"memory": "frame"})),
        ("stream", partial(allocated, {"memory": "stream"})),
        ("stream, average", averaged),
    )
}

STRATEGIES: Final[Mapping[str, Method]] = {
    f"{name}, {memory}": partial(ours, {"allocation": {"strategy": name, "memory": memory}})
    for name in get_args(AllocationSettings.model_fields["strategy"].annotation)
    for memory in ("frame", "stream")
}
