"""Warps maps along the flow over many frames, interpolating only once so that they do not blur."""

from typing import Self, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.flow import Flow, warped
from foveate.pipeline.geometry import Map, Mask

_Kind = TypeVar("_Kind", bound=np.generic)


class FlowTrack:
    """For each cell, where its content was when tracking began, and whether it was lost since.

    Each frame's flow updates these positions, not the maps; maps read at them are interpolated once, after any number
    of frames.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self._own_row, self._own_column = np.indices(shape, dtype=np.float32)
        self._across = self._down = np.zeros(shape, np.float32)  # displacement to the original position, in cells
        self.lost: Mask = np.zeros(shape, np.bool_)
        self.moved = False

    def copy(self) -> Self:
        """An independent copy. Arrays are shared, as they are replaced and never written."""
        twin = type(self)(self.lost.shape)
        twin._across, twin._down, twin.lost, twin.moved = self._across, self._down, self.lost, self.moved
        return twin

    def follow(self, flow: Flow | None, valid: Mask) -> None:
        """Advance by one frame. Flow None: nothing moved. ``valid`` is bool[grid]: cells whose flow is reliable."""
        if flow is not None:
            x, y = self._own_column + flow.dx, self._own_row + flow.dy
            self._across = flow.dx + warped(self._across, x, y)  # OpenCV rounds to 1/32 cell: small for displacements,
            self._down = flow.dy + warped(self._down, x, y)  # which vary slowly, but a position would not move
            lost = cv2.remap(self.lost.astype(np.uint8), x, y, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)
            self.lost = np.asarray(lost, np.bool_)
            self.moved = True
        self.lost = self.lost | ~valid

    def read(self, maps: Map) -> Map:
        """``maps``, float32[n, grid] from when tracking began, warped to the current frame."""
        if not self.moved:
            return maps
        x, y = self._own_column + self._across, self._own_row + self._down
        return np.stack([warped(plane, x, y) for plane in maps])

    def read_nearest(self, values: NDArray[_Kind]) -> NDArray[_Kind]:
        """The same for one map [grid] of integers or booleans, by nearest neighbour."""
        rows, columns = values.shape
        row = np.clip(np.rint(self._own_row + self._down), 0, rows - 1).astype(np.intp)
        column = np.clip(np.rint(self._own_column + self._across), 0, columns - 1).astype(np.intp)
        return values[row, column]
