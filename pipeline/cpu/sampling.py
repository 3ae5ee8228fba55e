"""Token-sized blocks of the levels: gathered, enlarged bilinearly, converted to RGB."""

from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.coverage import groups
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.colour import to_rgb
from foveate.pipeline.cpu.levels import Levels, PlanePyramid
from foveate.pipeline.cpu.upper import UpperLevels
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.selection import PATCH

Index = NDArray[np.int32]
T = TypeVar("T", np.uint8, np.float32)


def blocks(samples: NDArray[T], row: Index, column: Index, side: int, halo: int = 0) -> NDArray[T]:
    """[n, side + 2*halo, side + 2*halo]: block (row, column) in units of ``side`` samples; the edge is repeated."""
    height, width = samples.shape
    offsets = np.arange(-halo, side + halo)
    rows = np.clip(row[:, None] * side + offsets, 0, height - 1)
    columns = np.clip(column[:, None] * side + offsets, 0, width - 1)
    return samples[rows[:, :, None], columns[:, None, :]]


def enlarged_blocks(samples: NDArray[T], row: Index, column: Index, side: int, factor: int) -> NDArray[np.float32]:
    """The blocks of ``samples`` enlarged bilinearly: [n, side*factor, side*factor].

    The same values as enlarging all of ``samples`` and cutting the blocks out.
    """
    stacked = blocks(samples, row, column, side, halo=1).astype(np.float32)
    count, rim = len(row), side + 2
    size = (rim * factor, count * rim * factor)
    large = np.asarray(cv2.resize(stacked.reshape(count * rim, rim), size, interpolation=cv2.INTER_LINEAR), np.float32)
    return large.reshape(count, rim * factor, rim * factor)[:, factor:-factor, factor:-factor]


def plane_blocks(pyramid: PlanePyramid, lod: int, row: Index, column: Index) -> NDArray[np.float32]:
    """PATCH x PATCH samples of one plane at level ``lod``; halved chroma is enlarged for LOD 0."""
    if lod >= pyramid.base:
        return blocks(pyramid.level(lod), row, column, PATCH).astype(np.float32)
    return enlarged_blocks(pyramid.pixels, row, column, PATCH // 2, 2)


def patches(levels: Levels, upper: UpperLevels, tokens: Tokens, colour: Colour) -> NDArray[np.uint8]:
    """The tokens' pixels, uint8[K, PATCH, PATCH, 3] in RGB; those above TOP_LEVEL are sampled from ``upper``."""
    out = np.empty((len(tokens.lod), PATCH, PATCH, 3), np.uint8)
    for lod, at in groups(tokens):
        row, column = tokens.row[at], tokens.column[at]
        if lod > TOP_LEVEL:
            luma, cb, cr = (blocks(samples, row, column, PATCH) for samples in upper.planes(lod))
        else:
            luma, cb, cr = (plane_blocks(pyramid, lod, row, column) for pyramid in levels.planes)
        out[at] = to_rgb(luma, cb, cr, colour)
    return out
