"""Turning planes upright, as the stream's display matrix says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from av.sidedata.sidedata import Type
from av.video.frame import VideoFrame

from foveate.pipeline.frames import Plane

_AXIS_TOLERANCE = 0.02  # share of the larger term; matrices are 16.16 fixed point, some are scaled


@dataclass(frozen=True, slots=True)
class Orientation:
    """First swap rows and columns, then flip. ``skewed``: the angle asked for, if it is no quarter turn."""

    transpose: bool = False
    flip_rows: bool = False
    flip_columns: bool = False
    skewed: float | None = None

    @property
    def rotation(self) -> int:
        """Degrees counter-clockwise; a mirrored picture's turn is what remains after mirroring left-right."""
        if self.transpose:
            return 90 if self.flip_rows else 270
        return 180 if self.flip_rows else 0

    @property
    def mirrored(self) -> bool:
        """True where left and right hands are exchanged."""
        return self.transpose ^ self.flip_rows ^ self.flip_columns


UPRIGHT = Orientation()


class OrientationReader:
    """Orientations of one stream's frames.

    Reading a frame's side data ties it into a reference cycle, which would keep its pixels until the next
    garbage collection. So the matrix is read only where the angle, which is free, has changed.
    """

    def __init__(self) -> None:
        self._angle: int | None = None
        self._orientation = UPRIGHT

    def read(self, frame: VideoFrame) -> Orientation:
        """The frame's orientation."""
        if frame.rotation != self._angle:
            self._angle = frame.rotation
            self._orientation = _orientation(frame)
        return self._orientation


def _orientation(frame: VideoFrame) -> Orientation:
    """From the display matrix: x' = ax + cy, y' = bx + dy, y downwards."""
    try:
        matrix = frame.side_data.get(Type.DISPLAYMATRIX)  # type: ignore[call-overload]
    except ValueError:  # PyAV cannot list side data of a kind it does not know, such as EXIF
        return _from_angle(frame.rotation)
    if matrix is None:
        return UPRIGHT
    a, b, _, c, d = np.frombuffer(matrix, np.int32)[:5].tolist()
    straight, turned = max(abs(a), abs(d)), max(abs(b), abs(c))
    if turned <= _AXIS_TOLERANCE * straight:
        return Orientation(False, d < 0, a < 0)
    if straight <= _AXIS_TOLERANCE * turned:
        return Orientation(True, b < 0, c < 0)
    return Orientation(skewed=round(-math.degrees(math.atan2(b, a)), 1))


def _from_angle(angle: int) -> Orientation:
    """A turn by an angle in degrees counter-clockwise, without mirroring."""
    turns = {0: UPRIGHT, 90: Orientation(True, True, False), 180: Orientation(False, True, True)}
    turns[270] = Orientation(True, False, True)
    return turns.get(angle % 360, Orientation(skewed=float(angle)))


def turn(plane: Plane, orientation: Orientation) -> Plane:
    """The plane turned upright: uint8[H, W], or [W, H] where rows and columns swap; contiguous, read-only."""
    turned = cv2.transpose(plane) if orientation.transpose else plane
    if orientation.flip_rows or orientation.flip_columns:
        code = -1 if orientation.flip_rows and orientation.flip_columns else int(orientation.flip_columns)
        turned = cv2.flip(turned, code)
    upright: Plane = np.ascontiguousarray(turned, np.uint8)
    upright.setflags(write=False)
    return upright


def turn_chroma(plane: Plane, luma: Plane, orientation: Orientation) -> Plane:
    """A chroma plane turned upright; ``luma`` is the luma plane before turning.

    Where a flipped axis of a subsampled plane is odd, its samples would no longer lie on the pixels they
    belong to, so the plane is first expanded to the luma's size.
    """
    rows, columns = luma.shape
    odd = (orientation.transpose or orientation.flip_rows or orientation.flip_columns) and (rows | columns) & 1
    if odd and plane.shape != luma.shape:
        plane = plane.repeat(2, 0)[:rows].repeat(2, 1)[:, :columns]
    return turn(plane, orientation)
