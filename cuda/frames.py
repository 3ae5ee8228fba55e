"""Frames in device memory."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.surfaces import Surface
from foveate.cuda.frame_input import InputPlanes
from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.frames import Colour, Frame, LiveTimes, Plane


@dataclass(frozen=True, eq=False, repr=False)
class DeviceFrame:
    """One decoded picture in device memory, as the decoder writes it: luma, and interleaved Cb and Cr below it.

    The names are those of pipeline.frames.Frame; ``luma`` and ``chroma`` are copied to the host when asked for.
    ``surface`` belongs to this frame for as long as it lives.
    """

    index: int
    time: float
    width: int
    height: int
    surface: Surface  # whose pixels are uint8 or uint16 [rows of luma and chroma, pitch]
    chroma_row: int  # the row of ``pixels`` at which chroma begins
    colour: Colour
    discontinuity: bool = False
    live: LiveTimes | None = None

    @property
    def pixels(self) -> DeviceArray:
        """The surface's memory."""
        return self.surface.pixels

    @property
    def subsampled(self) -> bool:
        """True: chroma has half the luma's resolution."""
        return True

    @property
    def luma(self) -> Plane:
        """uint8[H, W], on the host."""
        return self._host[0]

    @property
    def chroma(self) -> tuple[Plane, Plane]:
        """Cb and Cr, uint8[ceil(H/2), ceil(W/2)], on the host."""
        return self._host[1], self._host[2]

    def rgb(self) -> NDArray[np.uint8]:
        """R'G'B' uint8[H, W, 3] on the host; see Frame.rgb."""
        return picture_rgb(self)

    @cached_property
    def _host(self) -> tuple[Plane, Plane, Plane]:
        """All planes, copied on first use."""
        pixels = narrowed(self.surface.download())
        rows, columns = (self.height + 1) // 2, (self.width + 1) // 2
        pairs = pixels[self.chroma_row : self.chroma_row + rows, : 2 * columns]
        return pixels[: self.height, : self.width], pairs[:, 0::2].copy(), pairs[:, 1::2].copy()

    @property
    def planes(self) -> InputPlanes:
        """Address and layout of each plane."""
        size = self.pixels.dtype.itemsize
        pitch = self.pixels.shape[1] * size
        chroma = self.pixels.pointer + self.chroma_row * pitch
        pointers = self.pixels.pointer, chroma, chroma + size
        return InputPlanes(pointers, (pitch,) * 3, (size, 2 * size, 2 * size), wide=size == 2)

    def __repr__(self) -> str:
        return f"DeviceFrame({self.index} at {self.time:.3f} s, {self.width}x{self.height}, {self.colour})"


AnyFrame = Frame | DeviceFrame


def narrowed(samples: NDArray[Any]) -> Plane:
    """Samples with 8 bits: unchanged, or rounded from 16 bits whose value is in the upper ones (P016)."""
    if samples.dtype == np.uint8:
        return samples
    return np.minimum((samples.astype(np.uint32) + 128) >> 8, 255).astype(np.uint8)
