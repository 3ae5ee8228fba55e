"""Pictures from Python as planes: arrays, tensors, images of PIL, frames of PyAV, torchcodec or Foveate."""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.frames import Colour, Frame, Plane
from foveate.pipeline.sources.cropping import AS_DECODED
from foveate.pipeline.sources.planes import RGB_COLOUR, Chroma, planes_of_rgb
from foveate.pipeline.sources.reading import PictureReader

Layout = Literal["rgb", "bgr"]

_CHANNELS: Final = (1, 3, 4)
_HOST: Final = {1, 3}  # kDLCPU, kDLCUDAHost
_WANTED: Final = "uint8 [H, W], [H, W, 3] or [3, H, W]"


class OwnPicture(NamedTuple):
    """One picture. Planes as in ``Frame``: read-only, and nobody else's."""

    luma: Plane
    chroma: Chroma | None
    colour: Colour
    kind: str  # what it was, in words


class ArrayReader:
    """Reads the pictures of one stream.

    R'G'B' becomes full range BT.601 of 8 bits (ITU-T T.871), with an error of at most one level; alpha is left out;
    YUV frames keep their planes, colour tags and orientation. Tensors that lie on a GPU are copied to the host.
    """

    def __init__(self, layout: Layout = "rgb") -> None:
        """``layout`` is the order of the colours of arrays and tensors. Raises SettingsError for another."""
        if layout not in ("rgb", "bgr"):
            raise SettingsError(f"layout must be 'rgb' or 'bgr', got {layout!r}")
        self._layout = layout
        self._decoded = PictureReader("frame", AS_DECODED)

    def read(self, picture: object, number: int) -> OwnPicture:
        """The picture's planes. Raises SourceError, which names ``number``, for what is none."""
        try:
            return self._read(picture)
        except _NoPictureError as error:
            raise SourceError(f"frame {number}: {error}") from None

    def _read(self, picture: Any) -> OwnPicture:
        if isinstance(picture, VideoFrame):
            return self._of_video(picture)
        if _is_frame(picture):
            return OwnPicture(picture.luma, picture.chroma, picture.colour, "frame")
        if _is_torchcodec(picture):
            return self._of_array(_on_host(picture.data), self._layout)
        if _is_pil(picture):
            return self._of_array(_of_pil(picture), "rgb")
        return self._of_array(_on_host(picture), self._layout)

    def _of_video(self, frame: VideoFrame) -> OwnPicture:
        shown = self._decoded.read(frame)
        chroma = None if shown.chroma is None else (_own(shown.chroma[0]), _own(shown.chroma[1]))
        return OwnPicture(_own(shown.luma), chroma, shown.colour, frame.format.name)

    def _of_array(self, array: NDArray[Any], layout: Layout) -> OwnPicture:
        pixels = _channels_last(array, layout)
        kind = f"{described(array)}, {layout}"
        if pixels.ndim == 2:
            return OwnPicture(_own(pixels), None, RGB_COLOUR, kind)
        luma, chroma = planes_of_rgb(np.ascontiguousarray(pixels[..., :3]), layout == "bgr")
        return OwnPicture(luma, chroma, RGB_COLOUR, kind)


def time_of(picture: Any) -> float | None:
    """The time in seconds of a frame of PyAV, torchcodec or Foveate; None for all others."""
    if isinstance(picture, VideoFrame):
        return picture.time
    if _is_frame(picture):
        return float(picture.time)
    return float(picture.pts_seconds) if _is_torchcodec(picture) else None


def is_one_picture(given: Any) -> bool:
    """True for what is a picture, or part of one, and not several of them."""
    if isinstance(given, VideoFrame) or _is_frame(given) or _is_pil(given):
        return True
    pixels = given.data if _is_torchcodec(given) else given
    return not isinstance(given, Sequence) and hasattr(pixels, "shape") and len(pixels.shape) != 4


def _is_frame(picture: object) -> bool:
    """True for the frame of a stream, also for one whose pixels lie on a GPU; they are not copied for this."""
    return isinstance(picture, Frame) or {"luma", "chroma", "rgb"} <= vars(type(picture)).keys()


def _is_torchcodec(picture: Any) -> bool:
    return hasattr(picture, "pts_seconds") and hasattr(picture, "data")


def _is_pil(picture: Any) -> bool:
    return hasattr(picture, "getbands") and hasattr(picture, "convert")


class _NoPictureError(Exception):
    """Why something is no picture, in words."""


def described(picture: Any) -> str:
    """Type and shape, in the notation of the docstrings."""
    shape, kind = getattr(picture, "shape", None), getattr(picture, "dtype", type(picture).__name__)
    return str(kind) if shape is None else f"{kind}{list(shape)}"


def _own(plane: NDArray[np.uint8]) -> Plane:
    """A read-only copy."""
    copy: Plane = plane.copy(order="C")
    copy.setflags(write=False)
    return copy


def _channels_last(array: NDArray[Any], layout: Layout) -> NDArray[np.uint8]:
    """[H, W], or [H, W, 3 or 4]. The last axis of 1, 3 or 4 values counts as the channels, or else the first."""
    description = f"{described(array)}, layout {layout}"
    if array.dtype != np.uint8:
        raise _NoPictureError(f"{description}: pixels must be uint8, from 0 to 255; scale and convert them")
    if not array.size:
        raise _NoPictureError(f"{description}: there are no pixels; a picture is {_WANTED}")
    if array.ndim == 3 and array.shape[2] not in _CHANNELS and array.shape[0] in _CHANNELS:
        array = np.moveaxis(array, 0, 2)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.ndim != 2 and not (array.ndim == 3 and array.shape[2] in _CHANNELS):
        raise _NoPictureError(f"{description}: a picture is {_WANTED}; give one at a time")
    return array


def _on_host(picture: Any) -> NDArray[Any]:
    """An array or a tensor as an array, without a copy where it can be."""
    if isinstance(picture, np.ndarray):
        return picture
    if not hasattr(picture, "__dlpack__"):
        raise _NoPictureError(f"{described(picture)}: a picture is an array or tensor, {_WANTED}")
    if picture.__dlpack_device__()[0] not in _HOST:
        copy = getattr(picture, "cpu", None) or getattr(picture, "get", None)  # of PyTorch; of CuPy
        if copy is None:
            raise _NoPictureError(f"{described(picture)} lies on a GPU, and has no cpu() to copy it to the host")
        picture = copy()
    if isinstance(picture, np.ndarray):
        return picture
    try:
        return np.from_dlpack(picture)
    except (BufferError, RuntimeError, TypeError) as error:
        raise _NoPictureError(f"{described(picture)}: cannot be read as an array: {error}") from None


def _of_pil(image: Any) -> NDArray[Any]:
    """uint8[H, W] or [H, W, 3 or 4]."""
    if image.mode in ("F", "I") or image.mode.startswith("I;"):
        width, height = image.size
        raise _NoPictureError(
            f"PIL image of mode {image.mode}, {width}x{height}: pixels must be of 8 bits; convert them"
        )
    return np.asarray(image if image.mode in ("L", "RGB", "RGBA") else image.convert("RGB"))
