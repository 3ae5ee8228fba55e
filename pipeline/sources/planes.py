"""A decoded PyAV frame as 8-bit planes: a view where it is 4:2:0, 4:4:4 or grey, else converted."""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from av.error import FFmpegError
from av.video.format import VideoFormat
from av.video.frame import VideoFrame
from av.video.plane import VideoPlane
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Colour, Matrix, Plane

RGB_COLOUR = Colour("bt601", True)  # full range BT.601 (ITU-T T.871), what RGB is turned into
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
_QUALITY = 2 | 0x2000 | 0x4000 | 0x40000  # SWS: bilinear, full chroma interpolation, full input, exact rounding

Chroma = tuple[Plane, Plane]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do with frames of one pixel format and one set of colour tags."""

    colour: Colour
    layout: Literal["grey", "planar", "rgb"]
    target: str  # the pixel format that is read
    reformatter: VideoReformatter  # one for each: before PyAV 17 it kept the range of what it last converted


class PlaneReader:
    """Reads frames of one stream. Keeps what it has worked out for a pixel format and its colour tags."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._plans: dict[tuple[str, int, int, bool], _Plan] = {}

    def read(self, frame: VideoFrame) -> tuple[Plane, Chroma | None, Colour]:
        """Luma uint8[H, W], chroma (see ``Frame``) and colour of a frame; read-only.

        4:2:0, 4:4:4 and grey of 8 bits are views that keep the frame alive. The rest is converted: RGB and
        palettes to 4:4:4, full range BT.601, within 1 level; YUV by libswscale in its own matrix and range,
        to 4:4:4 if it is 4:4:4 and else to 4:2:0. Alpha is ignored: colours count as stored.
        An unspecified matrix is BT.709 from 1280 columns or 720 rows on, else BT.601; an unspecified range
        is full for grey and yuvj formats, else limited. Raises SourceError.
        """
        high = frame.height >= 720 or frame.width >= 1280
        key = (frame.format.name, frame.colorspace, frame.color_range, high)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _plan(frame.format, *key[1:])
        if plan.target != key[0]:
            frame = self._converted(frame, plan)
        if plan.layout == "planar":
            luma, blue, red = frame.planes
            return _view(luma), (_view(blue), _view(red)), plan.colour
        if plan.layout == "grey":
            return _view(frame.planes[0]), None, plan.colour
        return *_from_rgb(frame.planes[0]), plan.colour

    def _converted(self, frame: VideoFrame, plan: _Plan) -> VideoFrame:
        matrix = _SWS_MATRIX[plan.colour.matrix]
        color_range = _FULL if plan.colour.full_range else _LIMITED
        try:
            return plan.reformatter.reformat(
                frame,
                format=plan.target,
                src_colorspace=matrix,
                dst_colorspace=matrix,
                src_color_range=color_range,
                dst_color_range=color_range,
                interpolation=_QUALITY,
            )
        except (FFmpegError, ValueError):
            raise SourceError(
                f"{self._name}: pixel format {frame.format.name} cannot be converted; convert it to yuv420p"
            ) from None


def unknown_matrix(frame: VideoFrame) -> int | None:
    """The frame's colour matrix where it is read as another one; None where it is known, or not stated."""
    known = _is_rgb(frame.format) or frame.colorspace in _MATRICES or frame.colorspace in _UNSAID
    return None if known else int(frame.colorspace)


def _plan(format_: VideoFormat, colorspace: int, color_range: int, high: bool) -> _Plan:
    if _is_rgb(format_):
        return _Plan(RGB_COLOUR, "rgb", "rgb24", VideoReformatter())
    matrix: Matrix = _MATRICES.get(colorspace, "bt709" if high else "bt601")
    grey = sum(not component.is_alpha for component in format_.components) == 1
    unsaid_is_full = grey or format_.name.startswith("yuvj")
    full = color_range == _FULL or (color_range != _LIMITED and unsaid_is_full)
    target = format_.name if format_.name in _DIRECT else _target(format_, grey)
    return _Plan(Colour(matrix, full), "grey" if grey else "planar", target, VideoReformatter())


def _is_rgb(format_: VideoFormat) -> bool:
    return format_.is_rgb or format_.has_palette or format_.name.startswith("xyz")


def _target(format_: VideoFormat, grey: bool) -> str:
    """An 8-bit format that libswscale gives the same range, whether or not it regards the frame's tags."""
    if grey:
        return "gray"
    whole = format_.chroma_width(64) == 64 and format_.chroma_height(64) == 64
    return f"yuv{'j' if format_.name.startswith('yuvj') else ''}{'444' if whole else '420'}p"


def _view(plane: VideoPlane) -> Plane:
    """The plane's pixels, uint8[H, W], without a copy; rows stored upwards are turned over."""
    step = plane.line_size
    view: Plane = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, abs(step))[:, : plane.width]
    if step < 0:
        view = view[::-1]
    view.setflags(write=False)
    return view


def _from_rgb(plane: VideoPlane) -> tuple[Plane, Chroma]:
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
    return planes_of_rgb(rows[:, : 3 * plane.width].reshape(plane.height, plane.width, 3))


def planes_of_rgb(pixels: NDArray[np.uint8], reverse: bool = False) -> tuple[Plane, Chroma]:
    """Luma and chroma of R'G'B', or if ``reverse`` B'G'R', uint8[H, W, 3]: ``RGB_COLOUR``, within 1 level."""
    code = cv2.COLOR_BGR2YCrCb if reverse else cv2.COLOR_RGB2YCrCb
    luma, red, blue = (np.asarray(p, np.uint8) for p in cv2.split(cv2.cvtColor(pixels, code)))
    for part in (luma, blue, red):
        part.setflags(write=False)
    return luma, (blue, red)
