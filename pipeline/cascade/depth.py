"""Depth, normals and occlusion, from a depth model supplied by the user.

The model is a Python function: R'G'B' uint8[H, W, 3] -> depth, float[h, w] of any size, in [0, 1], 0 nearest. It runs
on keyframes; in between, its output is warped along the flow.
"""

from collections.abc import Callable
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.errors import EngineError
from foveate.pipeline.geometry import CELL, Geometry, Map

DepthModel = Callable[[NDArray[np.uint8]], Any]

NAMES: Final = frozenset({"depth", "normal_x", "normal_y", "normal_z", "occlusion"})
OCCLUDED: Final = np.float32(0.1)
"""A step of depth, between neighbouring cells, that counts as full occlusion: a tenth of the range."""


def depth_of(picture: NDArray[np.uint8], model: DepthModel, geometry: Geometry) -> Map:
    """Depth of ``picture`` by ``model``, as means over the cells, float32[grid]; the padding repeats the edge.

    Raises EngineError where the output is not a depth map.
    """
    try:
        answer = np.asarray(model(picture))
    except Exception as error:  # whatever the user's own code raises
        raise EngineError(f"the depth model failed: {type(error).__name__}: {error}") from error
    if answer.ndim != 2 or not answer.size or not np.issubdtype(answer.dtype, np.floating):
        raise EngineError(f"the depth model must give float[h, w], got {answer.dtype}{list(answer.shape)}")
    if not np.isfinite(answer).all() or answer.min() < 0 or answer.max() > 1:
        raise EngineError("the depth model must give finite numbers in [0, 1], 0 for the nearest")
    rows, columns = -(-geometry.height // CELL), -(-geometry.width // CELL)
    whole = cv2.resize(answer.astype(np.float32), (geometry.width, geometry.height), interpolation=cv2.INTER_LINEAR)
    edge = (0, rows * CELL - geometry.height), (0, columns * CELL - geometry.width)
    blocks = np.pad(np.atleast_2d(whole), edge, mode="edge").reshape(rows, CELL, columns, CELL)
    beyond = (0, geometry.grid[0] - rows), (0, geometry.grid[1] - columns)
    return np.pad(blocks.mean(axis=(1, 3), dtype=np.float32), beyond, mode="edge")


def from_depth(name: str, depth: Map) -> Map:
    """One of NAMES, from ``depth`` float32[grid]."""
    if name == "depth":
        return depth
    if name == "occlusion":
        return np.minimum(_steepest(depth) / OCCLUDED, np.float32(1))
    return normals(depth)["xyz".index(name[-1])]


def normals(depth: Map) -> Map:
    """Unit normals of the surface, float32[grid] -> [3, grid]: x to the right, y down, z to the viewer.

    The range of depth is taken to be as long as the picture is wide, and the projection to be parallel.
    """
    long = depth.shape[1]
    down, across = (np.gradient(depth, axis=axis) if depth.shape[axis] > 1 else np.zeros_like(depth) for axis in (0, 1))
    stacked = np.stack([across * long, down * long, np.ones_like(depth)])
    return np.asarray(stacked / np.linalg.norm(stacked, axis=0), np.float32)


def _steepest(depth: Map) -> Map:
    """The greatest difference to any of the four neighbours."""
    step = np.zeros_like(depth)
    down, across = np.abs(np.diff(depth, axis=0)), np.abs(np.diff(depth, axis=1))
    for part, difference in ((np.s_[1:], down), (np.s_[:-1], down), (np.s_[:, 1:], across), (np.s_[:, :-1], across)):
        np.maximum(step[part], difference, out=step[part])
    return step
