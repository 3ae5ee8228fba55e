"""Every way of choosing tokens that the quality measure compares, as the pictures its reader holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, get_args

import numpy as np

from foveate.bench.footage import CELL, Footage, Plane
from foveate.bench.painting import NOT_SHOWN, ReaderPicture, downscaled, lods_of
from foveate.bench.peers.baselines import BASELINES
from foveate.bench.texture import Texture
from foveate.pipeline.settings import AllocationSettings
from foveate.pipeline.stream import open_stream


class Shown(NamedTuple):
    """What the reader holds after a frame: Y, Cb, Cr as in Picture, valid until the next; and what it was sent."""

    planes: tuple[Plane, ...]
    tokens: int


Method = Callable[[Footage, int], Iterator[Shown]]


def baseline(name: str, footage: Footage, budget: int) -> Iterator[Shown]:
    """One of BASELINES, which chooses cells of the true frames."""
    reader = ReaderPicture(footage.shapes)
    for picture, mask in zip(footage.pictures, BASELINES[name](footage, budget), strict=True):
        reader.paint(picture.planes, np.where(mask, 0, NOT_SHOWN).astype(np.int8))
        yield Shown(tuple(reader.planes), int(mask.sum()))


def downscale(footage: Footage, budget: int) -> Iterator[Shown]:
    """The whole frame resized so that it has at most K patches, of a shape as close as they allow."""
    rows, columns = patches_like(footage.pictures[0].luma.shape, budget)
    for picture in footage.pictures:
        luma = downscaled(picture.luma, rows * CELL, columns * CELL)
        chroma = (downscaled(plane, rows * CELL // 2, columns * CELL // 2) for plane in (picture.cb, picture.cr))
        yield Shown((luma, *chroma), rows * columns)


def patches_like(shape: tuple[int, ...], budget: int) -> tuple[int, int]:
    """Rows and columns of at most ``budget`` patches: the rows by the picture's shape, then the columns that fit."""
    height, width = shape
    scale = min(1.0, (budget * CELL * CELL / (height * width)) ** 0.5)
    rows = min(max(1, round(height * scale / CELL)), budget)
    return rows, min(-(-width // CELL), max(1, budget // rows))


def ours(options: Mapping[str, Any], footage: Footage, budget: int) -> Iterator[Shown]:
    """Foveate, under the settings of ``options``. Its tokens show the texture, which is close to the true frame."""
    reader = ReaderPicture(footage.shapes)
    with open_stream(footage.path, budget=budget, source={"frames": len(footage.pictures)}, **options) as stream:
        texture = Texture(stream.settings.change.threshold)
        for picture, selection in zip(footage.pictures, stream, strict=True):
            planes = texture.show(picture, selection.keyframe is not None)
            reader.paint(planes, lods_of(selection))
            yield Shown(tuple(reader.planes), len(selection))


def _plain(memory: str) -> dict[str, Any]:
    """No weights: only the reconstruction error decides."""
    return {"score": {"enabled": False}, "allocation": {"memory": memory, "min_gain": 0.0}}


METHODS: Final[Mapping[str, Method]] = {
    "downscale": downscale,
    **{name: partial(baseline, name) for name in BASELINES},
    "Foveate, frame, scores off": partial(ours, _plain("frame")),
    "Foveate, stream, scores off": partial(ours, _plain("stream")),
    "Foveate, frame": partial(ours, {"allocation": {"memory": "frame"}}),
    "Foveate, stream": partial(ours, {"allocation": {"memory": "stream"}}),
}

STRATEGIES: Final[Mapping[str, Method]] = {
    f"{name}, {memory}": partial(ours, {"allocation": {"strategy": name, "memory": memory}})
    for name in get_args(AllocationSettings.model_fields["strategy"].annotation)
    for memory in ("frame", "stream")
}
