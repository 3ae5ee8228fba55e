"""Video that is encoded for a recording, picture by picture: H.264 without reordering, each packet at its frame."""

from fractions import Fraction
from typing import Final

import av
import numpy as np
from av.video.codeccontext import VideoCodecContext
from av.video.reformatter import ColorRange, Colorspace

from foveate.pipeline.frames import FrameView

_OPTIONS: Final = {"preset": "superfast", "crf": "26", "tune": "zerolatency", "bf": "0", "threads": "1"}
_KEYFRAMES: Final = 60  # frames from one to the next
_LIMITED, _BT709 = 1, 1  # the codes of ITU-T H.273 as FFmpeg numbers them


class EncodedVideo:
    """Encodes the frames of one stream. After a change of size it begins anew."""

    def __init__(self) -> None:
        self._context: VideoCodecContext | None = None
        self._count = 0

    def packet(self, frame: FrameView) -> tuple[bytes, bool]:
        """The packet of one frame (Annex B), and whether it is a keyframe. Raises OSError without libx264.

        4:2:0 needs even sizes: the last row or column is repeated.
        """
        rgb = np.pad(frame.rgb(), ((0, frame.height & 1), (0, frame.width & 1), (0, 0)), "edge")
        height, width = rgb.shape[:2]
        if self._context is None or (self._context.width, self._context.height) != (width, height):
            self._context, self._count = _encoder(width, height), 0
        picture = av.VideoFrame.from_ndarray(rgb, format="rgb24")
        picture = picture.reformat(format="yuv420p", dst_colorspace=Colorspace.ITU709, dst_color_range=ColorRange.MPEG)
        picture.pts = self._count
        self._count += 1
        (packet,) = self._context.encode(picture)
        return bytes(packet), packet.is_keyframe


def _encoder(width: int, height: int) -> VideoCodecContext:
    try:
        context = av.CodecContext.create("libx264", "w")
    except ValueError as error:
        raise OSError("PyAV's FFmpeg has no libx264, which a recording of this source needs") from error
    assert isinstance(context, VideoCodecContext)
    context.width, context.height, context.pix_fmt = width, height, "yuv420p"
    context.time_base, context.framerate = Fraction(1, 25), Fraction(25)  # frames are shown at the recording's times
    context.gop_size = _KEYFRAMES
    context.options = dict(_OPTIONS)
    context.color_range, context.colorspace = _LIMITED, _BT709
    context.color_primaries, context.color_trc = _BT709, _BT709
    return context
