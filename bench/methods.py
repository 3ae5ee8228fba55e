"""Every way of choosing tokens that the quality measure compares, as the pictures its reader holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from foveate.bench.baselines import BASELINES, FRAMES_PER_TOKEN
from foveate.bench.footage import CELL, Footage, Plane
from foveate.bench.painting import NOT_SHOWN, Lods, ReaderPicture, downscaled, lods_of
from foveate.pipeline.stream import open_stream


class Shown(NamedTuple):
    """What the reader holds after a frame: Y, Cb, Cr as in Picture, valid until the next; and what it was sent."""

    planes: tuple[Plane, ...]
    tokens: float


Method = Callable[[Footage, int], Iterator[Shown]]


def baseline(name: str, footage: Footage, budget: int) -> Iterator[Shown]:
    """One of BASELINES, which chooses cells."""
    lods = (np.where(mask, 0, NOT_SHOWN).astype(np.int8) for mask in BASELINES[name](footage, budget))
    for cells, planes in _painted(footage, lods):
        yield Shown(planes, int((cells != NOT_SHOWN).sum()) / FRAMES_PER_TOKEN.get(name, 1))


def downscale(footage: Footage, budget: int) -> Iterator[Shown]:
    """The whole frame resized so that it has at most K patches, of a shape as close as they allow."""
    rows, columns = patches_like(footage.pictures[0].luma.shape, budget)
    for picture in footage.pictures:
        luma = downscaled(picture.luma, rows * CELL, columns * CELL)
        chroma = (downscaled(plane, rows * CELL // 2, columns * CELL // 2) for plane in (picture.cb, picture.cr))
        yield Shown((luma, *chroma), rows * columns)


def patches_like(shape: tuple[int, ...], budget: int) -> tuple[int, int]:
    """Rows and columns of at most ``budget`` patches: as many as fit whose shape is within a tenth of the picture's."""
    height, width = shape
    if budget >= -(-height // CELL) * -(-width // CELL):
        return -(-height // CELL), -(-width // CELL)
    scale = (budget * CELL * CELL / (height * width)) ** 0.5
    rows = max(1, round(height * scale / CELL))
    return rows, max(1, budget // rows)


def ours(options: Mapping[str, Any], footage: Footage, budget: int) -> Iterator[Shown]:
    """Foveate, under the settings of ``options``."""
    source = {"frames": len(footage.pictures)}
    with open_stream(str(footage.path), budget=budget, source=source, **options) as stream:
        for cells, planes in _painted(footage, map(lods_of, stream)):
            yield Shown(planes, tokens_in(cells))


def tokens_in(lods: Lods) -> int:
    """Number of tokens that cover the cells so."""
    raise NotImplementedError


def _painted(footage: Footage, lods: Iterator[Lods]) -> Iterator[tuple[Lods, tuple[Plane, ...]]]:
    reader = ReaderPicture(footage.pictures[0])
    for picture, cells in zip(footage.pictures, lods, strict=True):
        reader.paint(picture, cells)
        yield cells, tuple(reader.planes)
