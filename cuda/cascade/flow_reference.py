"""The flow search of flow.cu for all cells together: float32 NumPy, the same steps one after the other."""

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import CELL, TOP_LEVEL
from foveate.pipeline.spec import flow as spec
from foveate.pipeline.spec.flow import PATCH, STEPS

Map = NDArray[np.float32]
Index = NDArray[np.intp]

LEAST_STEP, LEAST_DETAIL, DOUBT = np.float32(spec.LEAST_STEP), np.float32(spec.LEAST_DETAIL), np.float32(spec.DOUBT)
_COUNT = np.float32(PATCH * PATCH)


def flow(coarse: tuple[Map, Map], fine: tuple[Map, Map], level: int) -> Flow:
    """The flow of every cell; each pair is luma before and now, of level 4 and of the flow level ``level``."""
    rows, columns = coarse[0].shape
    side = CELL >> level if level < TOP_LEVEL else 1
    row, column = (index.ravel() for index in np.indices((rows, columns)))
    none = np.zeros((2, rows * columns), np.float32)
    motion = _descend(*coarse, row - PATCH // 2, column - PATCH // 2, none) * np.float32(side)
    top, left = (place * side + side // 2 - PATCH // 2 for place in (row, column))
    motion = _descend(*fine, top, left, motion)
    worse = ~(_patch_error(*fine, top, left, motion) < _patch_error(*fine, top, left, none))
    motion[:, worse] = 0
    before, now = fine
    y, x = np.indices(now.shape, dtype=np.float32)
    down, across = (part.reshape(rows, columns).repeat(side, 0).repeat(side, 1) for part in motion)
    doubt = np.abs(_between(before, y + down, x + across) - now).reshape(rows, side, columns, side).mean(axis=(1, 3))
    confidence = np.maximum(np.float32(1) - doubt * DOUBT, np.float32(0)).astype(np.float32)
    dy, dx = (part.reshape(rows, columns) / np.float32(side) for part in motion)
    return Flow(dx, dy, confidence)


def _descend(before: Map, now: Map, top: Index, left: Index, start: Map) -> Map:
    """Motion (down, across) [2, n] of n patches, from ``start`` on."""
    y, x = _places(top, left)
    value = _sample(now, y, x)
    across = np.float32(0.5) * (_sample(now, y, x + 1) - _sample(now, y, x - 1))
    down = np.float32(0.5) * (_sample(now, y + 1, x) - _sample(now, y - 1, x))
    across -= across.mean(axis=1, keepdims=True)
    down -= down.mean(axis=1, keepdims=True)
    xx, xy, yy = (across * across).sum(1), (across * down).sum(1), (down * down).sum(1)
    determinant = xx * yy - xy * xy
    active = determinant > LEAST_DETAIL
    safe = np.where(active, determinant, np.float32(1))
    motion = start.copy()
    for _ in range(STEPS):
        moved_y, moved_x = y + motion[0][:, None], x + motion[1][:, None]
        difference = _between(before, moved_y.astype(np.float32), moved_x.astype(np.float32)) - value
        sx, sy = (across * difference).sum(1), (down * difference).sum(1)
        dx, dy = (yy * sx - xy * sy) / safe, (xx * sy - xy * sx) / safe
        motion = np.where(active, motion - np.stack([dy, dx]), motion)
        strayed = active & ~(np.abs(motion - start).max(axis=0) <= PATCH)
        motion[:, strayed] = start[:, strayed]
        active = active & ~strayed & ~(np.maximum(np.abs(dx), np.abs(dy)) < LEAST_STEP)
    return motion.astype(np.float32)


def _patch_error(before: Map, now: Map, top: Index, left: Index, motion: Map) -> Map:
    y, x = _places(top, left)
    there = _between(before, (y + motion[0][:, None]).astype(np.float32), (x + motion[1][:, None]).astype(np.float32))
    return np.asarray(((there - _sample(now, y, x)) ** 2).sum(axis=1), np.float32)


def _places(top: Index, left: Index) -> tuple[Index, Index]:
    """Rows and columns of the samples of each patch: two [n, PATCH * PATCH]."""
    down, across = (offset.ravel() for offset in np.indices((PATCH, PATCH)))
    return top[:, None] + down, left[:, None] + across


def _sample(picture: Map, row: Index, column: Index) -> Map:
    return picture[np.clip(row, 0, picture.shape[0] - 1), np.clip(column, 0, picture.shape[1] - 1)]


def _between(picture: Map, row: Map, column: Map) -> Map:
    """Bilinear, the edge repeated."""
    row = np.clip(row, 0, picture.shape[0] - 1).astype(np.float32)
    column = np.clip(column, 0, picture.shape[1] - 1).astype(np.float32)
    top, left = row.astype(np.intp), column.astype(np.intp)
    down, across = row - top.astype(np.float32), column - left.astype(np.float32)
    upper, lower = _sample(picture, top, left), _sample(picture, top + 1, left)
    upper = upper + across * (_sample(picture, top, left + 1) - upper)
    lower = lower + across * (_sample(picture, top + 1, left + 1) - lower)
    return upper + down * (lower - upper)
