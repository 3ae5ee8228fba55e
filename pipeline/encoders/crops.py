"""Crops of a picture that are encoded separately, and the cells that each of them covers."""

from dataclasses import dataclass

import numpy as np

from foveate.pipeline.encoders.image_text import ImageTextEncoder, Picture, Vectors
from foveate.pipeline.flow import warped
from foveate.pipeline.geometry import CELL, Geometry, Map
from foveate.pipeline.settings import ClipSettings


@dataclass(frozen=True, slots=True)
class Crop:
    """A rectangle that the encoder gets, and the cells inside it that take its result. In cells."""

    top: int
    left: int
    bottom: int  # exclusive, like right
    right: int
    serves: tuple[slice, slice]  # rows and columns of the Grid

    @property
    def cells(self) -> int:
        """Number of cells that take the result."""
        rows, columns = self.serves
        return int((rows.stop - rows.start) * (columns.stop - columns.start))

    def pixels(self, rgb: Picture) -> Picture:
        """Cut out of ``rgb``, the whole picture: uint8[h, w, 3]."""
        return np.ascontiguousarray(rgb[self.top * CELL : self.bottom * CELL, self.left * CELL : self.right * CELL])

    def at_cells(self, maps: Vectors, pixels: Picture) -> Map:
        """Values at the centres of the crop's own cells, float32[n, rows, columns].

        ``maps``, float32[h, w, n], span ``pixels``; between their samples they are interpolated bilinearly.
        """
        height, width = maps.shape[:2]
        down = _places(self.serves[0], self.top, pixels.shape[0], height)
        across = _places(self.serves[1], self.left, pixels.shape[1], width)
        x, y = np.meshgrid(across, down)
        planes = np.moveaxis(maps, -1, 0)
        found = [warped(np.ascontiguousarray(plane), x, y) for plane in planes]
        return np.stack(found)


def crops(geometry: Geometry, settings: ClipSettings) -> tuple[Crop, ...]:
    """The crops that the settings ask for; each cell belongs to one of them."""
    return whole_picture(geometry) if settings.dense == "native" else windows(geometry, settings.window)


def longest_side(encoder: ImageTextEncoder, settings: ClipSettings) -> int:
    """Pixels to which the longer side of a crop is scaled."""
    return settings.resolution or encoder.resolution * (2 if settings.dense == "native" else 1)


def whole_picture(geometry: Geometry) -> tuple[Crop, ...]:
    """One crop: the whole picture."""
    rows, columns = _inside(geometry)
    return (Crop(0, 0, rows, columns, (slice(0, rows), slice(0, columns))),)


def windows(geometry: Geometry, side: int) -> tuple[Crop, ...]:
    """Windows of ``side`` pixels, each overlapping the next by half; a cell belongs to the one it is most central in.

    Raises ValueError for a side of less than two cells.
    """
    cells = side // CELL
    if cells < 2:
        raise ValueError(f"side must be at least {2 * CELL} pixels, got {side}")
    rows, columns = _inside(geometry)
    return tuple(
        Crop(top, left, bottom, right, (down, across))
        for top, bottom, down in _spans(rows, cells)
        for left, right, across in _spans(columns, cells)
    )


def _spans(length: int, side: int) -> list[tuple[int, int, slice]]:
    """Start, end and own cells of each window along an axis of ``length`` cells."""
    if length <= side:
        return [(0, length, slice(0, length))]
    count = -(-(length - side) // (side // 2)) + 1
    starts = [round(index * (length - side) / (count - 1)) for index in range(count)]
    ends = [start + side for start in starts]
    middles = [0, *((end + start) // 2 for end, start in zip(ends[:-1], starts[1:], strict=True)), length]
    return [
        (start, end, slice(low, high))
        for start, end, low, high in zip(starts, ends, middles[:-1], middles[1:], strict=True)
    ]


def _inside(geometry: Geometry) -> tuple[int, int]:
    """Rows and columns of cells that hold a pixel of the picture."""
    return -(-geometry.height // CELL), -(-geometry.width // CELL)


def _places(served: slice, start: int, extent: int, samples: int) -> Map:
    """Positions of the centres of the cells ``served`` among ``samples`` that span ``extent`` pixels."""
    centres = (np.arange(served.start, served.stop, dtype=np.float32) - start + np.float32(0.5)) * CELL
    return np.asarray(centres * np.float32(samples / extent) - np.float32(0.5), np.float32)
