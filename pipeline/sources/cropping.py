"""Cropping and orientation that containers declare, and that FFmpeg's decoders do not apply."""

import struct
from dataclasses import dataclass

from av.codec.context import Flags

from foveate.pipeline.frames import Plane
from foveate.pipeline.sources.orientation import UPRIGHT, Orientation

EXACT = Flags.unaligned
"""A decoder's flag: to crop as the stream says; without it, FFmpeg keeps up to 63 columns at the left for alignment."""


@dataclass(frozen=True, slots=True)
class Crop:
    """Rows and columns to leave out of decoded pictures of one size; others are left whole."""

    width: int  # of the decoded pictures, pixels
    height: int
    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0

    def rows_and_columns(self) -> tuple[slice, slice]:
        """What is kept of the luma plane."""
        return slice(self.top, self.height - self.bottom), slice(self.left, self.width - self.right)

    def fits(self, luma: Plane) -> bool:
        """Whether it is for pictures of this size."""
        return luma.shape == (self.height, self.width)

    def cut(self, plane: Plane) -> Plane:
        """A view on what is kept of a plane, luma or chroma. ``plane`` is of the size of the luma, or of half of it.

        Where a subsampled plane would have to be cut within a sample, it is expanded to the luma's size.
        """
        rows, columns = self.rows_and_columns()
        if plane.shape != (self.height, self.width):
            if not (self.left | self.top) & 1:
                halved = slice(rows.start // 2, -(-rows.stop // 2)), slice(columns.start // 2, -(-columns.stop // 2))
                return plane[halved]
            plane = plane.repeat(2, 0)[: self.height].repeat(2, 1)[:, : self.width]
            plane.setflags(write=False)
        return plane[rows, columns]

    @property
    def kept(self) -> tuple[int, int]:
        """Width and height of the cropped picture."""
        return self.width - self.left - self.right, self.height - self.top - self.bottom


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a container declares and no decoder applies: first the cropping, then the orientation."""

    crop: Crop | None = None
    orientation: Orientation = UPRIGHT  # of frames without one of their own


AS_DECODED = Geometry()


def margins(width: int, height: int, left: int, top: int, right: int, bottom: int) -> Crop | None:
    """A Crop; None where nothing is left out, or nothing would be left."""
    crop = Crop(width, height, *(max(each, 0) for each in (left, top, right, bottom)))
    whole = crop.kept == (width, height)
    return None if whole or min(crop.kept) <= 0 else crop


def clean_aperture(terms: bytes, width: int, height: int) -> Crop | None:
    """The Crop of a ``clap`` box: size, and offset of its centre, as fractions (ISO/IEC 14496-12, 12.1.4.3).

    Its size is rounded to whole pixels, and so is its place. None where it says nothing, or nothing that can be.
    """
    if len(terms) < 32:
        return None
    numbers = struct.unpack(">IIIIiIiI", terms[:32])
    if not all(numbers[1::2]):
        return None
    wide, high, right, down = (numbers[i] / numbers[i + 1] for i in range(0, 8, 2))
    left, top = round(right + (width - wide) / 2), round(down + (height - high) / 2)
    return margins(width, height, left, top, width - left - round(wide), height - top - round(high))
