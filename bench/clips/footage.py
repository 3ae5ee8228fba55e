"""A clip's first frames, whole and in memory, as the quality measure and the baselines read them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import av
import numpy as np
from av.video.plane import VideoPlane
from numpy.typing import NDArray

from foveate.pipeline.errors import SourceError
from foveate.pipeline.geometry import CELL as CELL

Plane = NDArray[np.uint8]
Map = NDArray[np.float64]  # [rows, columns]: one value per cell


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


@dataclass(frozen=True, slots=True, eq=False)
class Footage:
    """The first frames of a file, of which there is at least one."""

    path: Path
    pictures: Sequence[Picture]

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return self.pictures[0].grid

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Rows and columns of luma, Cb and Cr."""
        return [plane.shape for plane in self.pictures[0].planes]


def read_footage(path: Path, frames: int) -> Footage:
    """The first ``frames`` pictures of a file, as 4:2:0. Raises FFmpegError, and SourceError where it has no video."""
    with av.open(f"file:{path}") as container:
        if not container.streams.video:
            raise SourceError(f"{path}: no video stream")
        return Footage(path, [_picture(frame) for frame in islice(container.decode(video=0), frames)])


def _picture(frame: av.VideoFrame) -> Picture:
    luma, cb, cr = (_pixels(plane) for plane in frame.reformat(format="yuv420p").planes)
    return Picture(luma, cb, cr, np.asarray(frame.to_ndarray(format="rgb24"), np.uint8))


def _pixels(plane: VideoPlane) -> Plane:
    rows = np.frombuffer(bytes(plane), np.uint8).reshape(plane.height, plane.line_size)
    return rows[:, : plane.width].copy()


def cell_means(values: NDArray[np.floating]) -> Map:
    """Mean of [H, W, C] over each cell and C. The edge is repeated."""
    flat = values.mean(axis=2, dtype=np.float64)
    height, width = flat.shape
    padded = np.pad(flat, ((0, -height % CELL), (0, -width % CELL)), mode="edge")
    rows, columns = padded.shape[0] // CELL, padded.shape[1] // CELL
    return padded.reshape(rows, CELL, columns, CELL).mean(axis=(1, 3))


def cell_changes(pictures: Sequence[Picture], gap: int = 1) -> Iterator[Map]:
    """For each frame from ``gap`` on, the mean absolute R'G'B' difference of each cell to ``gap`` frames earlier.

    In [0, 1].
    """
    for before, now in zip(pictures, pictures[gap:], strict=False):
        yield cell_means(np.abs(now.rgb.astype(np.float32) - before.rgb) / np.float32(255))
