"""Orientation: turning planes upright by the stream's display matrix."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import cv2
import numpy as np
from av.filter import Graph
from av.sidedata.sidedata import SideDataContainer, Type
from av.video.frame import VideoFrame

from foveate.pipeline.frames import Plane

_AXIS_TOLERANCE = 0.02  # share of the larger term; matrices are 16.16 fixed point, some are scaled
_UNKNOWN = range(len(Type), len(Type) + 16)  # kinds of side data that FFmpeg has or may get, and PyAV does not know


@dataclass(frozen=True, slots=True)
class Orientation:
    """First swap rows and columns, then flip. ``unsupported``: what the matrix asks for and cannot be applied."""

    transpose: bool = False
    flip_rows: bool = False
    flip_columns: bool = False
    unsupported: str | None = None

    @property
    def rotation(self) -> int:
        """Degrees counter-clockwise; a mirrored picture's turn is what remains after mirroring left-right."""
        if self.transpose:
            return 90 if self.flip_rows else 270
        return 180 if self.flip_rows else 0

    @property
    def mirrored(self) -> bool:
        """Whether the picture is mirrored."""
        return self.transpose ^ self.flip_rows ^ self.flip_columns


UPRIGHT = Orientation()


class OrientationReader:
    """Orientations of one stream's frames. They may change with any frame.

    A frame without a display matrix is as the container says if it is a keyframe, and else like the one before: H.264
    and HEVC state an orientation once for all frames up to the next such start (ITU-T H.264, D.2.27), and FFmpeg
    reports it with one.
    """

    def __init__(self, stated: Orientation = UPRIGHT) -> None:
        """``stated``: the orientation of frames without one of their own."""
        self._matrix: bytes | None = None
        self._stated = self._orientation = stated
        self._plain: dict[tuple[str, int, int], Graph] = {}

    def read(self, frame: VideoFrame) -> Orientation:
        """The frame's orientation."""
        matrix = self._read_matrix(frame)
        if matrix != self._matrix and (matrix is not None or frame.key_frame):
            self._matrix = matrix
            self._orientation = self._stated if matrix is None else _orientation(matrix)
        return self._orientation

    def _read_matrix(self, frame: VideoFrame) -> bytes | None:
        """The frame's display matrix."""
        try:
            return _listed_matrix(frame)
        except ValueError:  # PyAV cannot list side data of a kind it does not know, such as EXIF
            return _listed_matrix(self._without_unknown(frame))

    def _without_unknown(self, frame: VideoFrame) -> VideoFrame:
        """A frame with the same pixels and side data, less those kinds that PyAV does not know."""
        key = frame.format.name, frame.width, frame.height
        if key not in self._plain:
            self._plain = {key: _deleting_graph(frame)}
        graph = self._plain[key]
        graph.push(frame)
        plain = graph.pull()
        assert isinstance(plain, VideoFrame)
        return plain


def _listed_matrix(frame: VideoFrame) -> bytes | None:
    """The matrix among the frame's side data. Raises ValueError where any of that is of a kind unknown to PyAV.

    Listed by hand: ``frame.side_data`` would tie the frame into a reference cycle, which keeps its pixels until the
    next garbage collection.
    """
    listed = SideDataContainer(frame)  # type: ignore[call-arg]
    found = listed.get(Type.DISPLAYMATRIX) if len(listed) else None  # looking into an empty one takes 4 microseconds
    return None if found is None else bytes(found)


def _deleting_graph(frame: VideoFrame) -> Graph:
    graph = Graph()
    last = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1))
    for kind in _UNKNOWN:
        following = graph.add("sidedata", f"mode=delete:type={kind}")
        last.link_to(following)
        last = following
    last.link_to(graph.add("buffersink"))
    graph.configure()
    return graph


def _orientation(matrix: bytes) -> Orientation:
    """From the display matrix: x' = ax + cy, y' = bx + dy, y downwards."""
    a, b, _, c, d = np.frombuffer(matrix, np.int32)[:5].tolist()
    straight, turned = max(abs(a), abs(d)), max(abs(b), abs(c))
    if turned <= _AXIS_TOLERANCE * straight:
        return Orientation(False, d < 0, a < 0)
    if straight <= _AXIS_TOLERANCE * turned:
        return Orientation(True, b < 0, c < 0)
    if abs(a - d) <= _AXIS_TOLERANCE * straight and abs(b + c) <= _AXIS_TOLERANCE * turned:
        return Orientation(unsupported=f"rotation by {round(-math.degrees(math.atan2(b, a)), 1):g} degrees")
    terms = ", ".join(f"{term / 65536:.3g}" for term in (a, b, c, d))
    return Orientation(unsupported=f"display matrix ({terms})")


def turned(orientation: Orientation, quarters: int) -> Orientation:
    """The orientation followed by that many quarter turns counter-clockwise."""
    for _ in range(quarters):
        rows, columns = not orientation.flip_columns, orientation.flip_rows
        orientation = replace(orientation, transpose=not orientation.transpose, flip_rows=rows, flip_columns=columns)
    return orientation


def mirrored(orientation: Orientation, left_right: bool) -> Orientation:
    """The orientation followed by mirroring, left-right or top-bottom."""
    if left_right:
        return replace(orientation, flip_columns=not orientation.flip_columns)
    return replace(orientation, flip_rows=not orientation.flip_rows)


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
