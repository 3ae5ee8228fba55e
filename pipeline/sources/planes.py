"""A decoded PyAV frame as 8-bit planes: a view where it is 4:2:0, 4:4:4 or grey, else converted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from av.error import FFmpegError
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.plane import VideoPlane
from av.video.reformatter import Interpolation, VideoReformatter

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Colour, Matrix, Plane

_DIRECT = {"yuv420p", "yuvj420p", "yuv444p", "yuvj444p", "gray"}
_MATRICES: dict[int, Matrix] = {  # ISO/IEC 23091-2, MatrixCoefficients
    1: "bt709",
    4: "bt601",  # FCC, within 1% of BT.601
    5: "bt601",
    6: "bt601",
    7: "bt709",  # SMPTE 240M, within 1% of BT.709
    9: "bt2020",
    10: "bt2020",
}
_UNSAID = {0, 2, 3}  # RGB, unspecified, reserved
_SWS_MATRIX: dict[Matrix, int] = {"bt601": 5, "bt709": 1, "bt2020": 9}  # SWS_CS_*
_LIMITED, _FULL = 1, 2  # AVCOL_RANGE_MPEG, AVCOL_RANGE_JPEG
# bilinear | full chroma interpolation and input | accurate rounding
_QUALITY = int(Interpolation.BILINEAR) | 0x2000 | 0x4000 | 0x40000


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do with frames of one format and one set of colour tags."""

    colour: Colour
    grey: bool
    target: str | None  # pixel format to convert to; None: the planes are used as they are
    source_range: int = 0


class PlaneReader:
    """Reads frames of one stream. Keeps what it has worked out for a pixel format, and the converter."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._plans: dict[tuple[str, int, int, bool], _Plan] = {}
        self._reformatter = VideoReformatter()

    def read(self, frame: VideoFrame) -> tuple[Plane, tuple[Plane, Plane] | None, Colour]:
        """Luma uint8[H, W], chroma (see ``Frame``) and colour of a frame; read-only.

        4:2:0, 4:4:4 and grey of 8 bits are views that keep the frame alive. The rest is converted by
        libswscale: RGB and palettes to 4:4:4, full range BT.601; YUV in its own matrix and range to 4:4:4 if
        it is 4:4:4, else to 4:2:0. Alpha is ignored: colours count as stored. Raises SourceError.
        """
        high = frame.height >= 720 or frame.width >= 1280
        key = (frame.format.name, frame.colorspace, frame.color_range, high)
        plan = self._plans.get(key) or self._plans.setdefault(key, _plan(frame.format, *key[1:]))
        if plan.target is not None:
            frame = self._converted(frame, plan)
        if plan.grey:
            return _view(frame.planes[0], frame.width, frame.height), None, plan.colour
        luma, *chroma = (_view(plane, plane.width, plane.height) for plane in frame.planes)
        return luma, (chroma[0], chroma[1]), plan.colour

    def _converted(self, frame: VideoFrame, plan: _Plan) -> VideoFrame:
        matrix = _SWS_MATRIX[plan.colour.matrix]
        try:
            return self._reformatter.reformat(
                frame,
                format=plan.target,
                src_colorspace=matrix,
                dst_colorspace=matrix,
                src_color_range=plan.source_range,
                dst_color_range=_FULL if plan.colour.full_range else _LIMITED,
                interpolation=_QUALITY,
            )
        except (FFmpegError, ValueError):
            raise SourceError(
                f"{self._name}: pixel format {frame.format.name} cannot be converted; convert it to yuv420p"
            ) from None


def unknown_matrix(frame: VideoFrame) -> bool:
    """True where the frame names a colour matrix that is read as another one."""
    return not _is_rgb(frame.format) and frame.colorspace not in _MATRICES and frame.colorspace not in _UNSAID


def _plan(format_: VideoFormat, colorspace: int, color_range: int, high: bool) -> _Plan:
    if _is_rgb(format_):
        return _Plan(Colour("bt601", True), False, "yuvj444p", _FULL)
    matrix: Matrix = _MATRICES.get(colorspace, "bt709" if high else "bt601")
    grey = not any(component.is_chroma for component in format_.components)
    unsaid_is_full = grey or format_.name.startswith("yuvj")
    full = color_range == _FULL or (color_range != _LIMITED and unsaid_is_full)
    colour = Colour(matrix, full)
    target = None if format_.name in _DIRECT else _target(format_, grey, full)
    return _Plan(colour, grey, target, _FULL if full else _LIMITED)


def _is_rgb(format_: VideoFormat) -> bool:
    return format_.is_rgb or format_.has_palette or format_.name.startswith("xyz")


def _target(format_: VideoFormat, grey: bool, full: bool) -> str:
    if grey:
        return "gray"
    whole = format_.chroma_width(64) == 64 and format_.chroma_height(64) == 64
    return f"yuv{'j' if full else ''}{'444' if whole else '420'}p"


def _view(plane: VideoPlane, width: int, height: int) -> Plane:
    """The plane's pixels, uint8[height, width], without a copy; rows stored upwards are turned over."""
    step = abs(plane.line_size)
    view: Plane = np.ndarray((height, width), np.uint8, plane, strides=(step, 1))
    if plane.line_size < 0:
        view = view[::-1]
    view.setflags(write=False)
    return view


assert set(_SWS_MATRIX) == set(get_args(Matrix))
