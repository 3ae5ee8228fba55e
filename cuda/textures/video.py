"""A picture of a texture that follows a video: only what changed is copied, written, and built into the levels."""

from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.tensor_views import TensorView
from foveate.cuda.textures.boxes import Box, boxes_of
from foveate.cuda.textures.texture import Texture, check_values
from foveate.cuda.textures.write import Piece

_SIDE: Final = 32  # texels of a tile: what is compared, and the least that is written


class VideoTexture:
    """One layer of ``texture``, brought up to date frame by frame."""

    def __init__(self, texture: Texture, layer: int = 0) -> None:
        """Raises ValueError where the texture has no such layer."""
        if not 0 <= layer < texture.layers:
            raise ValueError(f"layer must be from 0 to {texture.layers - 1}, got {layer}")
        self.texture, self.layer = texture, layer
        self._memory = Memory(texture.device)
        self._before: NDArray[np.uint8] | None = None
        self._packed: tuple[NDArray[np.uint8], DeviceArray] | None = None

    def update(self, frame: Any) -> list[Box]:
        """Show ``frame``, and return the boxes that were written: where it differs from the one before, in tiles.

        ``frame``: as Texture.update takes it for one layer, [rows, columns, C] of the texture's size. Of uint8 in NumPy
        only what differs is copied. Frames on the card, and of other types, are written whole. Returns once the frame
        was read. Raises ValueError for other shapes and types.
        """
        check_values(frame, self.texture.components)
        if tuple(frame.shape[:-1]) != self.texture.shape:
            rows, columns = self.texture.shape
            raise ValueError(f"a frame must be [{rows}, {columns}, C], got {list(frame.shape)}")
        before, self._before = self._before, None  # in case that something fails
        comparable = isinstance(frame, np.ndarray) and frame.dtype == np.uint8
        if not comparable or before is None or before.shape != frame.shape:
            self.texture.update(frame, layer=self.layer)
            boxes = [Box(0, 0, *self.texture.shape)]
        else:
            boxes = changed_boxes(before, frame, self.texture.writer.most_boxes)
            self._write(frame, boxes)
        self._before = frame.copy() if comparable else None
        return boxes

    def free(self) -> None:
        """Release what it holds beside the texture, which stays."""
        self.texture.stream.synchronize()
        self._packed = None
        self._memory.free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def _write(self, frame: NDArray[np.uint8], boxes: list[Box]) -> None:
        """Copy the boxes one behind the other to the card, and write them from there."""
        if not boxes:
            return
        texture, components = self.texture, frame.shape[2]
        host, device = self._staging(frame.size)
        used, pieces = packed(frame, boxes, host)
        device.copy_from(host[:used], texture.stream)
        source = TensorView(device.pointer, (1, *frame.shape), (0, 0, components, 1), frame.dtype, self)
        texture.writer.enqueue(source, pieces, self.layer, texture.stream)
        texture.mipmap.enqueue(boxes, self.layer, 1, texture.stream)
        texture.stream.synchronize()  # the page-locked memory is used again

    def _staging(self, size: int) -> tuple[NDArray[np.uint8], DeviceArray]:
        """Page-locked and device memory for a frame of ``size`` values."""
        if self._packed is None or len(self._packed[0]) < size:
            self._memory.free()
            device = self._memory.array("changed texels", (size,), np.uint8, self.texture.stream)
            self._packed = self._memory.pinned((size,), np.uint8), device
        return self._packed


def changed_boxes(before: NDArray[np.uint8], now: NDArray[np.uint8], most: int) -> list[Box]:
    """At most ``most`` boxes of whole tiles that cover all texels in which two frames [rows, columns, C] differ."""
    rows, columns, components = now.shape
    differs = (before != now).reshape(rows, columns * components)
    across = np.logical_or.reduceat(differs, np.arange(0, columns * components, _SIDE * components), axis=1)
    marked = np.logical_or.reduceat(across, np.arange(0, rows, _SIDE), axis=0)
    return boxes_of(marked, _SIDE, (rows, columns), most)


def packed(frame: NDArray[np.uint8], boxes: list[Box], into: NDArray[np.uint8]) -> tuple[int, list[Piece]]:
    """Copies boxes of a frame one behind the other; returns how many values there are, and where each box lies."""
    used, pieces = 0, []
    for box in boxes:
        texels = frame[box.top : box.top + box.rows, box.left : box.left + box.columns]
        into[used : used + texels.size] = texels.reshape(-1)
        pieces.append(Piece(box, used, box.columns * frame.shape[2]))
        used += texels.size
    return used, pieces
