"""Decoded pictures in memory of their own: the decoder's is overwritten by what it decodes next."""

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveate.cuda.driver.device import Device
from foveate.cuda.driver.surfaces import Surface, SurfacePool


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """One decoded picture: luma, and below it Cb and Cr, interleaved; uint8, or uint16 with the value on top."""

    pts: int
    width: int
    height: int
    surface: Surface
    chroma_row: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the decoder lays out its pictures: the same until their size changes."""

    shape: Any  # as the decoder tells it
    width: int
    height: int
    samples: np.dtype[Any]
    surface: tuple[int, int]
    chroma_row: int


def _layout(frame: Any, start: int) -> _Layout:
    luma = frame.cuda()[0].__cuda_array_interface__
    height, width = luma["shape"][:2]
    wide = frame.format == importlib.import_module("PyNvVideoCodec").Pixel_Format.P016
    samples = np.dtype(np.uint16 if wide else np.uint8)
    row = width * samples.itemsize
    pitch = max((luma["strides"] or (row,))[0], row)  # of 10-bit pictures it tells samples, not bytes
    chroma_row = (frame.GetPtrToPlane(1) - start) // pitch
    surface = chroma_row + (height + 1) // 2, pitch // samples.itemsize
    return _Layout(frame.shape, width, height, samples, surface, chroma_row)


class PictureCopies:
    """Copies what one decoder decodes. Made, used and closed by the thread that owns the GPU."""

    def __init__(self, device: Device) -> None:
        self._stream = device.stream()
        self._pool = SurfacePool(device)
        self._layout: _Layout | None = None

    @property
    def stream(self) -> int:
        """The stream of the copies, as a number: where the decoder must enqueue what overwrites their sources."""
        return int(self._stream.handle)

    def own(self, frame: Any) -> Picture:
        """Enqueue a copy of a PyNvVideoCodec.DecodedFrame."""
        start = frame.GetPtrToPlane(0)
        if self._layout is None or self._layout.shape != frame.shape:
            self._layout = _layout(frame, start)
        layout = self._layout
        surface = self._pool.surface(layout.surface, layout.samples)
        surface.fill(start, self._stream)
        return Picture(frame.getPTS(), layout.width, layout.height, surface, layout.chroma_row)

    def finish(self) -> None:
        """Wait for all copies; then the decoder may be released."""
        self._stream.synchronize()

    def close(self) -> None:
        """Release what nobody holds; pictures that are still held stay valid."""
        self._pool.close()
