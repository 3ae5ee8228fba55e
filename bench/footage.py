"""A clip's first frames, whole and in memory, as the quality measure and the baselines read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import av
import numpy as np
from numpy.typing import NDArray

CELL: Final = 16  # pixels

Plane = NDArray[np.uint8]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """One decoded frame: luma uint8[H, W], Cb and Cr uint8[ceil(H/2), ceil(W/2)], and rgb uint8[H, W, 3]."""

    luma: Plane
    cb: Plane
    cr: Plane
    rgb: Plane

    @property
    def planes(self) -> tuple[Plane, Plane, Plane]:
        """Luma, Cb, Cr."""
        return self.luma, self.cb, self.cr

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells that hold at least one pixel."""
        return -(-self.luma.shape[0] // CELL), -(-self.luma.shape[1] // CELL)


def read_pictures(path: Path, frames: int) -> list[Picture]:
    """The first ``frames`` pictures of a file, 4:2:0. Raises FFmpegError."""
    with av.open(f"file:{path}") as container:
        return [_picture(frame) for frame in islice(container.decode(video=0), frames)]


def _picture(frame: av.VideoFrame) -> Picture:
    planar = frame.reformat(format="yuv420p")
    luma, cb, cr = (_pixels(plane) for plane in planar.planes)
    return Picture(luma, cb, cr, frame.to_ndarray(format="rgb24"))


def _pixels(plane: av.video.plane.VideoPlane) -> Plane:
    return np.frombuffer(bytes(plane), np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width].copy()


def cell_means(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Mean of [H, W] or [H, W, C] over each cell (and C): float64[rows, columns]. The edge is repeated."""
    flat = values if values.ndim == 2 else values.mean(axis=2)
    height, width = flat.shape
    padded = np.pad(flat, ((0, -height % CELL), (0, -width % CELL)), mode="edge")
    rows, columns = padded.shape[0] // CELL, padded.shape[1] // CELL
    return padded.reshape(rows, CELL, columns, CELL).mean(axis=(1, 3), dtype=np.float64)


def cell_changes(pictures: list[Picture], gap: int = 1) -> Iterator[NDArray[np.float64]]:
    """For each frame from ``gap`` on, the mean absolute R'G'B' difference of each cell to ``gap`` frames earlier.

    In [0, 1], float64[rows, columns].
    """
    for before, now in zip(pictures, pictures[gap:], strict=False):
        yield cell_means(np.abs(now.rgb.astype(np.float32) - before.rgb) / np.float32(255))
