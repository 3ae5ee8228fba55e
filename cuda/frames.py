"""Frames on their way into the texture: those that lie on the device already, and those that come from the host."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.decode.surfaces import Surface
from foveate.cuda.device import Stream
from foveate.cuda.memory import DeviceArray, Memory
from foveate.cuda.state import FRAME_INPUT
from foveate.pipeline.frames import Colour, Frame, Plane

_ALIGNMENT: Final = 16  # bytes that rows are padded to, so that four samples are read at once


@dataclass(frozen=True, eq=False, repr=False)
class DeviceFrame:
    """One decoded picture in device memory, as the decoder writes it: luma, and interleaved Cb and Cr below it.

    The names are those of pipeline.frames.Frame; ``luma`` and ``chroma`` are copied to the host when asked for.
    ``surface`` belongs to this frame for as long as it lives.
    """

    index: int
    seconds: float
    width: int
    height: int
    surface: Surface  # whose pixels are uint8 or uint16 [rows of luma and chroma, pitch]
    chroma_row: int  # the row of ``pixels`` at which chroma begins
    colour: Colour
    discontinuity: bool = False

    @property
    def pixels(self) -> DeviceArray:
        """Where they lie."""
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

    @cached_property
    def _host(self) -> tuple[Plane, Plane, Plane]:
        """All planes, copied by whichever thread asks."""
        pixels = narrowed(self.surface.download())
        rows, columns = (self.height + 1) // 2, (self.width + 1) // 2
        pairs = pixels[self.chroma_row : self.chroma_row + rows, : 2 * columns]
        return pixels[: self.height, : self.width], pairs[:, 0::2], pairs[:, 1::2]

    def describe(self, into: NDArray[np.void]) -> None:
        """Fill in the planes of a FRAME_INPUT."""
        size = self.pixels.dtype.itemsize
        pitch = self.pixels.shape[1] * size
        chroma = self.pixels.pointer + self.chroma_row * pitch
        into["planes"] = self.pixels.pointer, chroma, chroma + size
        into["pitches"] = pitch
        into["steps"] = size, 2 * size, 2 * size
        into["wide"] = size == 2

    def __repr__(self) -> str:
        return f"DeviceFrame({self.index} at {self.seconds:.3f} s, {self.width}x{self.height}, {self.colour})"


AnyFrame = Frame | DeviceFrame


def narrowed(samples: NDArray[Any]) -> Plane:
    """Samples of 8 bits as they are; of those with 16, whose value is in the upper ones, the upper 8, rounded."""
    if samples.dtype == np.uint8:
        return samples
    return np.minimum((samples.astype(np.uint32) + 128) >> 8, 255).astype(np.uint8)


class Staging:
    """Room for one host frame of a size: page-locked, and on the device."""

    def __init__(self, memory: Memory, frame: Frame, stream: Stream) -> None:
        halved = int(frame.subsampled)
        whole, rows, columns = (frame.height, frame.width), frame.height + halved, frame.width + halved
        chroma = (rows >> halved, columns >> halved)
        self._parts: list[tuple[int, int, tuple[int, int]]] = []  # offset, pitch, shape of each plane
        size = 0
        for shape in (whole, chroma, chroma):
            pitch = -(-shape[1] // _ALIGNMENT) * _ALIGNMENT
            self._parts.append((size, pitch, shape))
            size += shape[0] * pitch
        self._host = memory.pinned((size,), np.uint8)
        self._device = memory.array("staged frame", (size,), np.uint8, stream)

    def bring(self, frame: Frame, into: NDArray[np.void], stream: Stream) -> None:
        """Enqueue the copy, and fill in the planes of a FRAME_INPUT. The last copy from here must have ended."""
        into["planes"] = 0
        for at, (plane, (offset, pitch, (rows, columns))) in enumerate(
            zip(planes_of(frame), self._parts, strict=False)
        ):
            view = self._host[offset : offset + rows * pitch].reshape(rows, pitch)
            np.copyto(view[:, :columns], plane)
            into["planes"][at] = self._device.pointer + offset
            into["pitches"][at] = pitch
        into["steps"] = 1
        into["wide"] = 0
        self._device.copy_from(self._host, stream)


def planes_of(frame: Frame) -> tuple[Plane, ...]:
    """Luma, and Cb and Cr where there are any."""
    return (frame.luma, *(frame.chroma or ()))


def empty_input() -> NDArray[np.void]:
    """A FRAME_INPUT without planes."""
    return np.zeros((), FRAME_INPUT)
